"""All contracts on a real Triton, through the sidecar's own objects: what is asked arrives, what is told is true."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from sidecar.generation.formats import FORMATS
from sidecar.guidance.call_guide import call_guide
from sidecar.guidance.validation import fits
from sidecar.prompts.tokenizer import Tokenizer
from sidecar.responses.errors import ApiError
from stack.local import SCRIPTED_BY_CONTRACT, SMOLLM2_BY_CONTRACT
from stack.paths import TOKENIZER, TRITON_VENV
from stack.triton import Triton
from stack.triton import start as start_triton
from tests.contracts.conftest import EventLog
from tests.contracts.generations import Speaker, chat, script

CONTRACTS = tuple(SCRIPTED_BY_CONTRACT)
TEXT_CONTRACTS = CONTRACTS[1:]
GUIDING_CONTRACTS = tuple(name for name in CONTRACTS if name != "llm_api")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "big": {"type": "boolean"}},
    "required": ["city", "big"],
    "additionalProperties": False,
}

WEATHER = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "maxLength": 20},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["place", "unit", "days"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return Tokenizer.load(TOKENIZER)


@pytest.fixture(scope="module")
def text_triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triton]:
    """A server with the models that the session's has no room for."""
    directory = tmp_path_factory.mktemp("text-triton")
    models = [SMOLLM2_BY_CONTRACT[name].triton_model for name in TEXT_CONTRACTS]
    server = start_triton(
        TRITON_VENV,
        directory,
        [*models, "scripted_accumulate", "scripted_pipeline", "scripted_ensemble"],
        log=directory / "triton.log",
        tokenizer=TOKENIZER,
    )
    yield server
    server.stop()


async def speaker(server: Triton, model: str, vocabulary: Tokenizer) -> AsyncIterator[Speaker]:
    address = f"127.0.0.1:{server.grpc_port}"
    async with grpc.aio.insecure_channel(address) as channel:
        yield await Speaker.find(address, model, vocabulary, channel)


@pytest.fixture(params=CONTRACTS)
async def scripted(request: pytest.FixtureRequest, triton: Triton, vocabulary: Tokenizer) -> AsyncIterator[Speaker]:
    async for found in speaker(triton, SCRIPTED_BY_CONTRACT[request.param].triton_model, vocabulary):
        assert found.contract.name == request.param
        yield found


@pytest.fixture(params=CONTRACTS)
async def smollm2(
    request: pytest.FixtureRequest, triton: Triton, text_triton: Triton, vocabulary: Tokenizer
) -> AsyncIterator[Speaker]:
    server = text_triton if request.param in TEXT_CONTRACTS else triton
    async for found in speaker(server, SMOLLM2_BY_CONTRACT[request.param].triton_model, vocabulary):
        assert found.contract.name == request.param
        yield found


@pytest.fixture
async def accumulating(text_triton: Triton, vocabulary: Tokenizer) -> AsyncIterator[Speaker]:
    async for found in speaker(text_triton, "scripted_accumulate", vocabulary):
        yield found


@pytest.fixture
async def pipeline(text_triton: Triton, vocabulary: Tokenizer) -> AsyncIterator[Speaker]:
    async for found in speaker(text_triton, "scripted_pipeline", vocabulary):
        yield found


async def test_the_text_comes_as_it_is_generated(scripted: Speaker) -> None:
    pieces = ["Grüße ", "an alle ", "👋"]
    assert (await scripted.ask(script(*pieces))).texts == pieces


async def test_usage_is_as_exact_as_the_contract_tells(scripted: Speaker) -> None:
    running = scripted.start(script("one", " two", " three"))
    answer = await running.answer()
    told = scripted.contract.name != "llm_api"
    # Runtimes count the token that ends the answer, our tokenizer sees only its text.
    assert (answer.tokens, answer.decoder.counted) == (4 if told else 3, not told)
    if scripted.contract.name in {"ensemble", "vllm"}:
        assert answer.decoder.input_tokens == len(running.generation.prompt_ids)
    else:
        assert answer.decoder.input_tokens is None


@pytest.mark.parametrize(
    ("steps", "limit", "reason"),
    [
        (["one two"], 100, "stop"),
        (["one two", {"no_end_id": True}], 100, "stop"),
        ([{"split_ids": "one two three four"}], 2, "length"),
    ],
)
async def test_the_reason_of_the_end_is_known(scripted: Speaker, steps: list[Any], limit: int, reason: str) -> None:
    answer = await scripted.ask(script(*steps), max_tokens=limit)
    assert answer.decoder.finish_reason == reason
    assert (answer.text, answer.tokens <= limit) == ("one two", True)


async def test_characters_that_span_tokens(scripted: Speaker) -> None:
    text = "日本語 👩‍🚀 déjà"
    answer = await scripted.ask(script({"split_ids": text}))
    if scripted.contract.name == "ensemble":
        # Each response is detokenized alone; nothing can repair that, so it is counted.
        assert answer.decoder.broken_characters == answer.text.count("\ufffd") > 0
        assert scripted.contract.remedy
    else:
        assert (answer.text, answer.decoder.broken_characters) == (text, 0)


async def test_special_tokens_show_where_the_contract_can(scripted: Speaker) -> None:
    text = (await scripted.ask(script("a<|im_start|>b"))).text
    assert text == ("a<|im_start|>b" if scripted.contract.name == "vllm" else "ab")


async def test_an_accumulating_ensemble_keeps_characters_whole(accumulating: Speaker, vocabulary: Tokenizer) -> None:
    text = "日本語 👩‍🚀 déjà"
    answer = await accumulating.ask(script({"split_ids": text}))
    assert (answer.text, answer.decoder.broken_characters) == (text, 0)
    assert answer.tokens == len(vocabulary.encode(text)) + 1


async def test_a_real_ensemble_is_one_too(pipeline: Speaker) -> None:
    assert (pipeline.contract.name, pipeline.contract.guides) == ("ensemble", False)
    answer = await pipeline.ask(script("one", " two"))
    assert (answer.texts, answer.tokens, answer.decoder.finish_reason) == (["one", " two"], 3, "stop")


async def test_sampling_is_sent_explicitly(scripted: Speaker, events: EventLog) -> None:
    running = scripted.start(script("ok"), max_tokens=17, temperature=0.5, top_p=0.25, seed=2**40 + 1)
    await running.answer()
    inputs = (await events.wait_for("start", running.generation.request_id))["inputs"]
    sampling = json.loads(inputs.get("sampling_parameters", "{}")) or {
        name.removeprefix("sampling_param_").removeprefix("runtime_"): value for name, value in inputs.items()
    }
    sampling.setdefault("max_tokens", sampling.get("request_output_len"))
    expected = {"max_tokens": 17, "temperature": 0.5, "top_p": 0.25, "seed": 2**40 + 1}
    assert {name: sampling[name] for name in expected} == expected


async def test_a_cancelled_generation_ends_in_the_model(scripted: Speaker, events: EventLog) -> None:
    running = scripted.start(script("one", {"hang": True}))
    async for text, _ in running:
        assert text == "one"
        break
    running.cancel()
    await events.wait_for("cancelled", running.generation.request_id)


@pytest.mark.parametrize("before", [[], ["one"]])
async def test_an_error_of_the_model_is_raised(scripted: Speaker, before: list[str]) -> None:
    texts = []
    with pytest.raises(ApiError) as raised:
        async for text, _ in scripted.start(script(*before, {"error": "boom"})):
            texts.append(text)
    assert (raised.value.code, texts) == ("infer_backend_unavailable", before)


async def test_a_prompt_beyond_the_context_is_refused(smollm2: Speaker) -> None:
    with pytest.raises(ApiError) as raised:
        await smollm2.ask("word " * 9000)
    assert raised.value.code == "context_length_exceeded"


async def test_a_greedy_answer_is_the_same_behind_every_contract(smollm2: Speaker) -> None:
    answer = await smollm2.ask(chat("What is the capital of France?"), temperature=0.0)
    assert answer.text == "The capital of France is Paris."
    assert answer.decoder.finish_reason == "stop"


async def test_the_seed_decides(smollm2: Speaker) -> None:
    texts = [(await smollm2.ask(chat("Tell me a story."), max_tokens=16, seed=seed)).text for seed in (1, 1, 2**40, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


async def test_an_answer_ends_at_its_limit(smollm2: Speaker) -> None:
    answer = await smollm2.ask(chat("Tell me a story."), temperature=0.0, max_tokens=5)
    assert (answer.tokens, answer.decoder.finish_reason) == (5, "length")


async def test_a_repeated_prompt_is_served_from_the_cache(smollm2: Speaker) -> None:
    prompt = chat("Repeat after me: " + "again and " * 40)
    await smollm2.ask(prompt, max_tokens=1, temperature=0.0)
    answer = await smollm2.ask(prompt, max_tokens=1, temperature=0.0)
    # The vLLM backend does not tell.
    assert (answer.decoder.cached_tokens >= 64) is (smollm2.contract.name != "vllm")


def conversation(*turns: tuple[str, str]) -> str:
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return text + "<|im_start|>assistant\n"


@pytest.fixture
def call_guided(smollm2: Speaker) -> dict[str, Any]:
    """A guide of calls for the contract, and what is greedy."""
    framing, form = FORMATS["hermes"].framing, smollm2.contract.call_guide_form
    guide = call_guide({"get_weather": WEATHER, "get_time": {}}, {"get_weather": WEATHER}, framing, form)
    assert guide.constrained == {"get_weather"}
    return {"call_guide": guide.document, "temperature": 0.0}


@pytest.mark.parametrize("smollm2", GUIDING_CONTRACTS, indirect=True)
async def test_a_call_that_the_model_begins_is_guided_to_one_that_fits(
    smollm2: Speaker, call_guided: dict[str, Any]
) -> None:
    # The calls so far have other arguments than the schema wants.
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    prompt = conversation(
        ("system", "Call get_weather to tell the weather."),
        ("user", "What is the weather in Rome?"),
        ("assistant", call),
        ("user", "And in Oslo?"),
        ("assistant", call.replace("Rome", "Oslo")),
        ("user", "And in Paris?"),
    )
    assert '"city"' in (await smollm2.ask(prompt, temperature=0.0)).text
    answer = await smollm2.ask(prompt, **call_guided)
    made = json.loads(answer.text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
    assert made["name"] == "get_weather"
    assert fits(json.dumps(made["arguments"]), WEATHER)


@pytest.mark.parametrize("smollm2", GUIDING_CONTRACTS, indirect=True)
async def test_a_guide_of_calls_leaves_an_answer_in_text_as_it_is(
    smollm2: Speaker, call_guided: dict[str, Any]
) -> None:
    answer = await smollm2.ask(chat("What is the capital of France?"), **call_guided)
    assert answer.text == "The capital of France is Paris."
    assert answer.decoder.finish_reason == "stop"


@pytest.mark.parametrize("smollm2", GUIDING_CONTRACTS, indirect=True)
async def test_a_guided_answer_fits_its_schema(smollm2: Speaker) -> None:
    guide = json.dumps(SCHEMA)
    value = json.loads((await smollm2.ask(chat("Name a city."), guide=guide)).text)
    assert set(value) == {"city", "big"}
    assert (value["city"] in {"Paris", "Rome"}, type(value["big"])) == (True, bool)
