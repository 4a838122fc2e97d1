"""What a token costs: calls of Python functions in the core, which do not depend on the machine."""

from collections.abc import Sequence
from typing import Any

import pytest

from sidecar.exchange.exchange import Exchange
from sidecar.generation.style import Style, choose_style
from sidecar.prompts.detokenizer import ByteLevelDetokenizer, Detokenizer
from tests.core import kit
from tests.core.python_calls import counted_calls

WORDS = [f" word{number}" for number in range(50)]
FIRST_WORD = 1000
TABLE: dict[int, str | bytes] = {byte + kit.FIRST_BYTE: bytes([byte]) for byte in range(256)}
TABLE |= {FIRST_WORD + number: word for number, word in enumerate(WORDS)}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
PLAIN = Style(None, None)
TOOLS = choose_style("", reasoning="none", calls="hermes")
REASONING_AND_TOOLS = choose_style("", reasoning="think", calls="hermes")
CALL = '<tool_call>{"name": "f", "arguments": {"a": "'
MOST = 11
MOST_IN_ARGUMENTS = 18


class ByteLevelRenderer(kit.ByteRenderer):
    """Its detokenizer is the product's own."""

    def detokenizer(self) -> Detokenizer:  # type: ignore[override]
        return ByteLevelDetokenizer(TABLE)


def answering(style: Style, before: str, **body: Any) -> Exchange:
    """An exchange whose model has written ``before``."""
    served = kit.model(style=style, renderer=ByteLevelRenderer(5), context_length=10_000)
    exchange = kit.exchange(served)
    kit.handle(exchange, kit.request(stream=True, **body))
    exchange.upstream(kit.text(before), 101.0)
    return exchange


def calls_for(exchange: Exchange, tokens: Sequence[bytes]) -> int:
    """How many Python functions are called, or generators resumed, while ``exchange`` reads ``tokens``."""
    with counted_calls("sidecar.") as calls:
        for token in tokens:
            exchange.upstream(token, 101.0)
    return calls.total()


@pytest.mark.parametrize(
    ("style", "before", "body", "most"),
    [
        (PLAIN, "Hi", {}, MOST),
        (TOOLS, "Hi", {"tools": [TOOL]}, MOST),
        (TOOLS, CALL, {"tools": [TOOL]}, MOST_IN_ARGUMENTS),
        (REASONING_AND_TOOLS, "<think>", {"tools": [TOOL]}, MOST),
        (REASONING_AND_TOOLS, "<think>Hm.</think>Hi", {"tools": [TOOL]}, MOST),
        (REASONING_AND_TOOLS, f"<think>Hm.</think>{CALL}", {"tools": [TOOL]}, MOST_IN_ARGUMENTS),
    ],
    ids=["text", "text with tools", "arguments", "reasoning", "text after reasoning", "arguments after reasoning"],
)
def test_a_token_takes_few_calls_wherever_it_stands(style: Style, before: str, body: dict[str, Any], most: int) -> None:
    exchange = answering(style, before, **body)
    first, *tokens = [kit.response([FIRST_WORD + number]) for number in range(len(WORDS))]
    exchange.upstream(first, 101.0)
    before_them = exchange.report.usage.output_tokens
    assert calls_for(exchange, tokens) <= most * len(tokens)
    assert exchange.report.usage.output_tokens == before_them + len(tokens)
