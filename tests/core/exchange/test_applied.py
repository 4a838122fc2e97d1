"""The response says of strict functions and of effort what was applied, and the runtime gets the guide that says so."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.exchange.commands import CallUpstream
from sidecar.generation.formats import FORMATS
from sidecar.generation.style import Style
from sidecar.prompts.renderer import Prompt
from tests.core.kit import END, INPUTS, ByteRenderer, exchange, final, handle, model, request, response, sent, text
from tests.core.kit import play as play_pieces

HERMES = Style(None, FORMATS["hermes"])
GUIDING = TokenLevel(
    INPUTS | {"guided_decoding_guide_type", "guided_decoding_guide"}, batched=True, tokens_per_block=0, guides=True
)
UNGUIDED = replace(GUIDING, guides=False)
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


class ApplyingRenderer(ByteRenderer):
    """Says that it applied an effort."""

    def render(self, request: object, **_: object) -> Prompt:
        return replace(super().render(request), applied_effort="low")


def answered(served: Any, **body: Any) -> dict[str, Any]:
    _, commands = play_pieces([text("x") + response([END]) + final()], of=exchange(served), **body)
    answer: dict[str, Any] = json.loads(sent(commands))
    return answer


@pytest.mark.parametrize(
    ("style", "contract", "strict"),
    [(HERMES, GUIDING, True), (HERMES, UNGUIDED, False), (Style(None, None), GUIDING, False)],
)
def test_strict_is_what_was_applied(style: Style, contract: TokenLevel, strict: bool) -> None:
    tools = [
        {"type": "function", "name": "f", "parameters": CLOSED, "strict": True},
        {"type": "function", "name": "g", "parameters": CLOSED},
    ]
    answer = answered(model(style=style, contract=contract), tools=tools)
    assert [tool["strict"] for tool in answer["tools"]] == [strict, False]
    (call,) = handle(exchange(model(style=style, contract=contract)), request(tools=tools))
    assert isinstance(call, CallUpstream)
    assert (b"ebnf_grammar" in call.body) is strict


@pytest.mark.parametrize(
    ("renderer", "asked", "told"),
    [
        (ApplyingRenderer(5), "xhigh", "low"),
        (ByteRenderer(5), "high", "high"),
        (ByteRenderer(5), None, None),
    ],
)
def test_effort_is_what_was_applied(renderer: ByteRenderer, asked: str | None, told: str | None) -> None:
    assert answered(model(renderer=renderer), reasoning={"effort": asked})["reasoning"]["effort"] == told
