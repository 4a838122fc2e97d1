"""What a request demands of the form of its answer, and how that is brought about with the model at hand.

Demanded are a call (``tool_choice`` is ``required`` or names a function) or JSON of a schema (``text.format``). Guided
decoding keeps to either from the first token on. Where the model has none, its setting decides: the request is refused,
or the model is only told in words. JSON together with tools that the model may call or not is never guided: no runtime
can guide to «a call by markers, or text by schema», so the text is only checked when it is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sidecar.guidance.schemas import (
    Schema,
    answer_schema,
    call_schema,
    check_schemas,
    demanded_tools,
    guide_document,
)
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest

Unguided = Literal["refuse", "prompt"]
"""What becomes of a demand on a model without guided decoding."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """How an answer is kept to its form.

    ``functions`` are those that may be called, with their parameters' schemas. ``guide`` is the JSON Schema for the
    runtime; ``demand`` is what the model is told in words instead. ``text_schema`` is what visible text is checked
    against.
    """

    functions: Mapping[str, Mapping[str, Any]]
    guide: str | None = None
    demand: str | None = None
    text_schema: Schema | None = None


def plan_guidance(request: ResponsesRequest, can_guide: bool, unguided: Unguided) -> Guidance:
    """The guidance for ``request``.

    Raises:
        ApiError: ``invalid_request`` for a schema that cannot be used, ``unsupported_parameter`` for a demand that the
            model cannot be held to.
    """
    check_schemas(request)
    tools = [] if request.tool_choice == "none" else request.tools
    functions = {tool.name: tool.parameters or {} for tool in tools}
    demanded = demanded_tools(request)
    schema = answer_schema(request)
    if demanded:
        called = {tool.name: functions[tool.name] for tool in demanded}
        words = f"Answer with a call of {' or '.join(called)}, and nothing else."
        return _demand(called, call_schema(demanded), "tool_choice", words, can_guide, unguided)
    if schema is None:
        return Guidance(functions)
    if functions:
        return Guidance(functions, text_schema=schema)
    words = f"Answer with JSON that fits this JSON Schema, and nothing else:\n{guide_document(schema)}"
    return _demand({}, schema, "text.format", words, can_guide, unguided)


def _demand(
    functions: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    param: str,
    words: str,
    can_guide: bool,
    unguided: Unguided,
) -> Guidance:
    text_schema = None if functions else schema
    if can_guide:
        return Guidance(functions, guide=guide_document(schema), text_schema=text_schema)
    if unguided == "refuse":
        message = f"{param} cannot be kept to on this model: its runtime has no guided decoding."
        raise ApiError("unsupported_parameter", message, param)
    return Guidance(functions, demand=words, text_schema=text_schema)
