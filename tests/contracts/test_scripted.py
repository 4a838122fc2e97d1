"""The scripted model plays every element of its language."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

import pytest
from tokenizers import Tokenizer

from stack.triton import Triton
from tests.contracts.conftest import EventLog
from tests.contracts.triton_client import Answer, TritonClient

END = 2
Play = Callable[..., list[int]]


@pytest.fixture
def prompt(tokenizer: Tokenizer) -> Play:
    """The ids of a prompt with a script."""

    def encode(*script: object) -> list[int]:
        return tokenizer.encode(f"<|im_start|>user\nscript: {json.dumps(script)}<|im_end|>\n").ids

    return encode


def texts(tokenizer: Tokenizer, answer: Answer) -> list[str]:
    return [tokenizer.decode(piece, skip_special_tokens=False) for piece in answer.pieces]


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ([], ["<|im_end|>"]),
        (["Hello", " world", "😀"], ["Hello", " world", "😀", "<|im_end|>"]),
        ([{"ids": [19556, 28]}, {"no_end_id": True}], ["Hello,"]),
        ([{"sleep": 0.001}, "a", {"no_end_id": True}], ["a"]),
        ([{"repeat": [3, " x", 0.001]}], [" x", " x", " x", "<|im_end|>"]),
        ([{"split_ids": "Hello, world"}, {"no_end_id": True}], ["Hello", ",", " world"]),
    ],
)
async def test_elements(
    client: TritonClient, tokenizer: Tokenizer, prompt: Play, script: list[object], pieces: list[str]
) -> None:
    answer = await client.answer("scripted", prompt(*script), 100, end_id=END)
    assert texts(tokenizer, answer) == pieces
    assert answer.final


async def test_split_ids_splits_characters(client: TritonClient, tokenizer: Tokenizer, prompt: Play) -> None:
    answer = await client.answer("scripted", prompt({"split_ids": "世界😀"}), 100)
    assert all(len(piece) == 1 for piece in answer.pieces)
    assert len(answer.pieces) > 3
    assert tokenizer.decode(answer.ids) == "世界😀"


async def test_without_an_end_id_in_the_request_none_is_sent(
    client: TritonClient, tokenizer: Tokenizer, prompt: Play
) -> None:
    assert texts(tokenizer, await client.answer("scripted", prompt("a"), 100)) == ["a"]


@pytest.mark.parametrize("limit", [1, 3, 4])
async def test_the_limit_cuts_a_script_and_its_end_id(client: TritonClient, prompt: Play, limit: int) -> None:
    answer = await client.answer("scripted", prompt({"ids": [5, 6, 7]}, {"ids": [8]}), limit, end_id=END)
    assert answer.ids == [5, 6, 7, 8][:limit]
    assert answer.final


async def test_the_last_script_of_a_prompt_is_played(client: TritonClient, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode('script: ["first"] and then script: ["second"] and more').ids
    assert texts(tokenizer, await client.answer("scripted", ids, 100)) == ["second"]


async def test_a_prompt_without_a_script_gets_a_fixed_answer(client: TritonClient, tokenizer: Tokenizer) -> None:
    answer = await client.answer("scripted", tokenizer.encode("Hello").ids, 100)
    assert texts(tokenizer, answer) == ["This model plays the script in its prompt."]


@pytest.mark.parametrize(
    "text",
    ["script: [1]", 'script: [{"unknown": 1}]', "script: [", 'script: {"a": 1}', 'script: [{"ids": ["a"]}]'],
)
async def test_what_is_no_script_is_an_error(client: TritonClient, tokenizer: Tokenizer, text: str) -> None:
    answer = await client.answer("scripted", tokenizer.encode(text).ids, 100)
    assert "script" in answer.error.lower()
    assert answer.final


@pytest.mark.parametrize("before", [[], ["a"]], ids=["first", "in the middle"])
@pytest.mark.parametrize("separately", [False, True])
async def test_an_error(
    client: TritonClient, tokenizer: Tokenizer, prompt: Play, before: list[str], separately: bool
) -> None:
    script = [*before, {"error": "boom", "final_separately": separately}, "never sent"]
    answer = await client.answer("scripted", prompt(*script), 100)
    assert texts(tokenizer, answer) == before
    assert answer.error == "boom"
    assert answer.final
    assert answer.responses[-1].error == ("" if separately else "boom")


async def test_without_streaming_the_script_is_one_response(client: TritonClient, prompt: Play) -> None:
    ids = prompt({"ids": [5, 6]}, {"ids": [7]})
    answer = await client.answer("scripted", ids, 100, streaming=False, exclude_input_in_output=True, end_id=END)
    assert answer.pieces == [[5, 6, 7, END]]


@pytest.mark.parametrize("script", [[{"hang": True}], ["a", {"hang": True}], ["a", {"sleep": 1000}]])
async def test_a_cancel_is_seen_within_100_ms(
    client: TritonClient, prompt: Play, events: EventLog, script: list[object]
) -> None:
    request_id = f"cancel {json.dumps(script)}"
    stream = client.stream("scripted", prompt(*script), 100, request_id=request_id)
    reading = asyncio.create_task(stream.first())
    await events.wait_for("start", request_id)
    if script[0] == "a":
        await reading
    cancelled_at = time.time()
    stream.cancel()
    seen = await events.wait_for("cancelled", request_id)
    assert seen["time"] - cancelled_at < 0.1
    await asyncio.gather(reading, return_exceptions=True)


async def test_hundreds_of_scripts_play_and_are_cancelled_at_a_time(
    client: TritonClient, prompt: Play, events: EventLog
) -> None:
    names = [f"one of many {number}" for number in range(300)]
    streams = [client.stream("scripted", prompt("a", {"hang": True}), 100, request_id=name) for name in names]
    firsts = await asyncio.gather(*(stream.first() for stream in streams))
    assert all(first.ids for first in firsts)
    for stream in streams:
        stream.cancel()
    for name in names:
        await events.wait_for("cancelled", name)


async def test_the_diary_tells_how_a_request_was_made(
    client: TritonClient, tokenizer: Tokenizer, prompt: Play, events: EventLog
) -> None:
    ids = prompt("a")
    inputs = {"end_id": END, "seed": 2**63, "runtime_top_p": 0.5, "guided_decoding_guide_type": "json"}
    await client.stream("scripted", ids, 7, request_id="described", **inputs).answer()
    started, finished = [await events.wait_for(event, "described") for event in ("start", "finished")]
    assert started["inputs"] == {**inputs, "input_lengths": len(ids), "request_output_len": 7, "streaming": True}
    assert started["prompt"] == tokenizer.decode(ids, skip_special_tokens=False)
    assert started["prompt_tokens"] == len(ids)
    assert finished["output_tokens"] == 2
    assert started["time"] <= finished["time"]


async def test_a_crash_ends_the_process_and_never_a_stream_well(
    start_scripted: Callable[[], Triton], prompt: Play
) -> None:
    async with TritonClient(start_scripted().grpc_port) as client:

        async def failure() -> str:
            # A request that the crash catches on its way may hang for ever.
            try:
                async with asyncio.timeout(3):
                    return (await client.answer("scripted", prompt("b"), 100)).error
            except TimeoutError:
                return ""

        # What a process says just before it dies may be lost with it.
        stream = client.stream("scripted", prompt("a", {"sleep": 1.0}, {"crash": True}), 100)
        assert (await stream.first()).ids
        rest = asyncio.create_task(stream.first())
        async with asyncio.timeout(60):
            while "is not healthy" not in await failure():
                await asyncio.sleep(0.05)
        # The stream itself may be told, or hang.
        assert not rest.done() or "is not healthy" in rest.result().error
        stream.cancel()
        await asyncio.gather(rest, return_exceptions=True)
