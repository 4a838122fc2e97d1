"""The CPU model behaves as TensorRT-LLM does at its tensors."""

from __future__ import annotations

import asyncio
import json

import pytest
from tokenizers import Tokenizer

from tests.contracts.triton_client import Answer, Response, Stream, TritonClient

END = 2
QUESTION = "What is the capital of France?"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "rank": {"$ref": "#/$defs/rank"}},
    "required": ["city", "rank"],
    "additionalProperties": False,
    "$defs": {"rank": {"type": "integer", "minimum": 1, "maximum": 9}},
}


@pytest.fixture
def chat(tokenizer: Tokenizer) -> list[int]:
    """A question as SmolLM2's chat template renders it."""
    turns = (("system", "You are a helpful assistant."), ("user", QUESTION))
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return tokenizer.encode(text + "<|im_start|>assistant\n").ids


async def test_an_answer_is_one_id_per_response_and_ends_with_the_end_id(
    client: TritonClient, tokenizer: Tokenizer, chat: list[int]
) -> None:
    answer = await client.answer("smollm2", chat, 50, end_id=END)
    assert tokenizer.decode(answer.ids) == "The capital of France is Paris."
    assert answer.ids[-1] == END
    assert all(len(piece) == 1 for piece in answer.pieces)
    assert answer.final
    shapes = {name: value.shape for name, value in answer.responses[0].outputs.items()}
    assert shapes == {"output_ids": (1, 1, 1), "sequence_length": (1, 1)}


async def test_without_sampling_inputs_decoding_is_greedy(client: TritonClient, chat: list[int]) -> None:
    first, second = [await client.answer("smollm2", chat, 12, temperature=t) for t in (0.5, 5.0)]
    assert first.ids == second.ids


async def test_the_seed_decides_a_sampled_answer(client: TritonClient, chat: list[int]) -> None:
    seeds = (1, 1, 2, 3, 4)
    answers = [
        await client.answer("smollm2", chat, 12, seed=seed, temperature=2.0, runtime_top_p=1.0) for seed in seeds
    ]
    assert answers[0].ids == answers[1].ids
    assert len({tuple(answer.ids) for answer in answers}) > 1


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_an_answer_stops_at_its_limit(client: TritonClient, chat: list[int], limit: int) -> None:
    answer = await client.answer("smollm2", chat, limit, end_id=END)
    assert len(answer.ids) == limit
    assert END not in answer.ids
    assert answer.final


async def test_without_an_end_id_only_the_limit_ends_an_answer(client: TritonClient, chat: list[int]) -> None:
    assert len((await client.answer("smollm2", chat, 20)).ids) == 20


async def test_any_id_can_be_the_end_id(client: TritonClient, tokenizer: Tokenizer, chat: list[int]) -> None:
    paris = tokenizer.encode(" Paris").ids[0]
    assert (await client.answer("smollm2", chat, 50, end_id=paris)).ids[-1] == paris


async def test_a_stop_word_ends_an_answer_and_is_part_of_it(
    client: TritonClient, tokenizer: Tokenizer, chat: list[int]
) -> None:
    word = tokenizer.encode(" of France").ids
    words = [word, [len(word)] + [-1] * (len(word) - 1)]
    answer = await client.answer("smollm2", chat, 50, end_id=END, stop_words_list=words)
    assert tokenizer.decode(answer.ids) == "The capital of France"


async def test_bad_words_and_biases_change_what_is_likely(client: TritonClient, chat: list[int]) -> None:
    (the,) = (await client.answer("smollm2", chat, 1)).ids
    assert (await client.answer("smollm2", chat, 1, bad_words_list=[[the], [1]])).ids != [the]
    bias = [0.0] * 500 + [1000.0]
    assert (await client.answer("smollm2", chat, 2, embedding_bias=bias)).ids == [500, 500]


@pytest.mark.parametrize("limit", range(1, 9))
async def test_ids_inside_a_character_are_told(client: TritonClient, tokenizer: Tokenizer, limit: int) -> None:
    prompt = tokenizer.encode("😀" * 8).ids
    answer = await client.answer("smollm2", prompt, limit)
    assert len(answer.ids) == limit
    assert "😀😀😀".startswith(tokenizer.decode(answer.ids).rstrip("\ufffd"))


async def test_without_streaming_one_response_carries_prompt_and_answer(client: TritonClient, chat: list[int]) -> None:
    asked = {"streaming": False, "end_id": END, "return_num_input_tokens": True, "return_num_output_tokens": True}
    streamed = await client.answer("smollm2", chat, 50, end_id=END)
    whole = await client.answer("smollm2", chat, 50, **asked)
    assert whole.pieces == [chat + streamed.ids]
    assert whole.responses[0].outputs["num_input_tokens"].tolist() == [[len(chat)]]
    assert whole.responses[0].outputs["num_output_tokens"].tolist() == [[len(chat + streamed.ids)]]
    assert (await client.answer("smollm2", chat, 50, exclude_input_in_output=True, **asked)).pieces == [streamed.ids]


async def test_metrics_and_log_probabilities_come_when_asked_for(client: TritonClient, chat: list[int]) -> None:
    answer = await client.answer("smollm2", chat, 4, return_log_probs=True, return_perf_metrics=True)
    log_probs = [r.outputs["output_log_probs"].item() for r in answer.responses if r.outputs]
    last = [r.outputs for r in answer.responses if r.outputs][-1]
    assert last["cum_log_probs"].item() == pytest.approx(sum(log_probs))
    assert max(log_probs) <= 0
    times = [last[f"{name}_time_ns"].item() for name in ("arrival", "first_scheduled", "first_token", "last_token")]
    assert times == sorted(times)
    blocks = [last[f"kv_cache_{name}_blocks"].item() for name in ("alloc_new", "reused", "alloc_total")]
    assert blocks[0] + blocks[1] == blocks[2] == 1


@pytest.mark.parametrize("ending", [{"end_id": END}, {}], ids=["end_id", "no_end_id"])
@pytest.mark.parametrize(
    ("kind", "guide", "texts"),
    [
        ("regex", "(yes|no)/[0-9]", {f"{word}/{digit}" for word in ("yes", "no") for digit in range(10)}),
        ("ebnf_grammar", 'root ::= "yes" | "no"', {"yes", "no"}),
        ("json_schema", '{"enum": ["yes", "no"]}', {'"yes"', '"no"'}),
    ],
)
async def test_a_guide_decides_the_text(
    client: TritonClient,
    tokenizer: Tokenizer,
    chat: list[int],
    kind: str,
    guide: str,
    texts: set[str],
    ending: dict[str, int],
) -> None:
    answer = await client.answer(
        "smollm2", chat, 60, guided_decoding_guide_type=kind, guided_decoding_guide=guide, **ending
    )
    assert tokenizer.decode(answer.ids) in texts
    assert (answer.ids[-1] == END) == bool(ending)
    assert answer.final


async def test_a_schema_with_references_gives_an_instance_of_it(
    client: TritonClient, tokenizer: Tokenizer, chat: list[int]
) -> None:
    guide = {"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": json.dumps(SCHEMA)}
    answer = await client.answer("smollm2", chat, 60, end_id=END, **guide)
    instance = json.loads(tokenizer.decode(answer.ids))
    assert set(instance) == {"city", "rank"}
    assert 1 <= instance["rank"] <= 9


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": '{"not": {}}'}, "cannot be compiled"),
        ({"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": "{"}, "is not JSON"),
        ({"guided_decoding_guide_type": "regex", "guided_decoding_guide": "(a"}, "cannot be compiled"),
        ({"guided_decoding_guide_type": "ebnf_grammar", "guided_decoding_guide": "root :="}, "parse grammar"),
        ({"guided_decoding_guide_type": "structural_tag", "guided_decoding_guide": "{}"}, "Unknown"),
        ({"guided_decoding_guide_type": "regex"}, "guided_decoding_guide"),
        ({"beam_width": 2}, "beam_width is not supported"),
        ({"lora_task_id": 1}, "lora_task_id is not supported"),
        ({"return_context_logits": True}, "return_context_logits is not supported"),
        ({"request_output_len": 0}, "request_output_len must be above 0"),
        ({"input_ids": [5] * 8192, "input_lengths": 8192}, "Prompt length (8192) exceeds maximum input length (8191)"),
    ],
)
async def test_what_cannot_be_done_is_an_error(
    client: TritonClient, chat: list[int], inputs: dict[str, object], message: str
) -> None:
    answer = await client.answer("smollm2", chat, 5, **inputs)
    assert message in answer.error
    assert answer.final
    assert answer.ids == []


async def test_several_answers_are_generated_at_a_time(client: TritonClient, chat: list[int]) -> None:
    endless = [client.stream("smollm2", chat, 1900) for _ in range(3)]
    for stream in endless:
        assert (await stream.first()).ids
    assert (await client.answer("smollm2", chat, 50, end_id=END)).ids[-1] == END
    for stream in endless:
        stream.cancel()


async def test_a_full_queue_refuses_and_cancelled_requests_leave_it(client: TritonClient, chat: list[int]) -> None:
    running = [client.stream("smollm2", chat, 1900) for _ in range(4)]
    for stream in running:
        assert (await stream.first()).ids
    waiting = [client.stream("smollm2", chat, 1900) for _ in range(32)]
    firsts = [asyncio.create_task(stream.first()) for stream in waiting]
    refused = await refusal(client, chat)
    assert refused.error == "Maximum queue size of 32 has been reached, please try again later"
    await leave(running + waiting, firsts)
    # Would take minutes if those that ran, or those that waited, were still to be generated.
    assert (await accepted(client, chat)).ids[-1] == END


async def test_a_request_is_cancelled_while_its_prompt_is_read(client: TritonClient, chat: list[int]) -> None:
    # Each takes many seconds before its first token.
    reading = [client.stream("smollm2", [start, *range(300, 2200)], 10) for start in range(4)]
    firsts = [asyncio.create_task(stream.first()) for stream in reading]
    behind = asyncio.create_task(client.answer("smollm2", chat, 50, end_id=END))
    await asyncio.sleep(0)
    await leave(reading, firsts)
    assert (await behind).ids[-1] == END


async def test_a_stop_request_ends_the_stream_of_the_same_id(client: TritonClient, chat: list[int]) -> None:
    stream = client.stream("smollm2", chat, 1900, request_id="to be stopped")
    assert (await stream.first()).ids
    stopping = await client.stream("smollm2", chat, 1, request_id="to be stopped", stop=True).answer()
    assert stopping.final
    assert stopping.ids == []
    rest = await stream.answer()
    assert rest.final
    assert len(rest.ids) < 1899


async def leave(streams: list[Stream], reads: list[asyncio.Task[Response]]) -> None:
    for stream in streams:
        stream.cancel()
    await asyncio.gather(*reads, return_exceptions=True)


async def refusal(client: TritonClient, chat: list[int]) -> Answer:
    """The answer to a request that finds the queue full; those sent before may still be on their way."""
    while True:
        stream = client.stream("smollm2", chat, 1900)
        try:
            async with asyncio.timeout(0.5):
                return await stream.answer()
        except TimeoutError:
            stream.cancel()


async def accepted(client: TritonClient, chat: list[int]) -> Answer:
    """The answer to a request that finds a place; those that left may still be on their way out."""
    while (answer := await client.answer("smollm2", chat, 50, end_id=END)).error:
        pass
    return answer
