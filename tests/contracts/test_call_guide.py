"""The CPU model's engine takes the grammar of text with calls: text stays free, and a call is one that fits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizers import Tokenizer

from sidecar.generation.formats import FORMATS
from sidecar.guidance.call_guide import call_guide
from sidecar.guidance.schemas import fits
from tests.contracts.triton_client import TritonClient

END = 2
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "maxLength": 20},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["place", "unit", "days"],
    "additionalProperties": False,
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
# The calls of the conversation have other arguments than the schema wants.
TURNS = [
    ("system", "Call get_weather to tell the weather."),
    ("user", "What is the weather in Rome?"),
    ("assistant", CALL),
    ("user", "And in Oslo?"),
    ("assistant", CALL.replace("Rome", "Oslo")),
    ("user", "And in Paris?"),
]


def prompt(tokenizer: Tokenizer, turns: list[tuple[str, str]]) -> list[int]:
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return tokenizer.encode(text + "<|im_start|>assistant\n").ids


@pytest.fixture
def guide() -> dict[str, str]:
    functions = {"get_weather": WEATHER, "get_time": {"type": "object"}}
    made = call_guide(functions, {"get_weather": WEATHER}, FORMATS["hermes"].framing, "ebnf_grammar")
    assert made.document is not None
    return {"guided_decoding_guide_type": "ebnf_grammar", "guided_decoding_guide": made.document}


async def test_a_call_that_the_model_begins_is_guided_to_one_that_fits(
    client: TritonClient, tokenizer: Tokenizer, guide: dict[str, str]
) -> None:
    ids = prompt(tokenizer, TURNS)
    free = tokenizer.decode((await client.answer("smollm2", ids, 80, end_id=END)).ids)
    guided = tokenizer.decode((await client.answer("smollm2", ids, 80, end_id=END, **guide)).ids)
    assert '"city"' in free
    text = guided.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    call = json.loads(text)
    assert call["name"] == "get_weather"
    assert fits(json.dumps(call["arguments"]), WEATHER)


async def test_an_answer_in_text_stays_what_it_is(
    client: TritonClient, tokenizer: Tokenizer, guide: dict[str, str]
) -> None:
    ids = prompt(tokenizer, [("system", "You are a helpful assistant."), ("user", "What is the capital of France?")])
    answer = await client.answer("smollm2", ids, 50, end_id=END, **guide)
    assert tokenizer.decode(answer.ids) == "The capital of France is Paris."
    assert answer.ids[-1] == END
