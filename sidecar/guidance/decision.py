"""What a request demands of the form of its answer, and how that is brought about with the model at hand.

Demanded are calls (``tool_choice`` is ``required`` or names a function) or JSON of a schema (``text.format``). Guided
decoding keeps to either from the first token on. Where the model has none, its setting decides: the request is refused,
or the model is only told in words. JSON together with tools that the model may call or not is never guided: no runtime
can guide to «a call by markers, or text by schema», so the text is only checked when it is whole.

A function that is ``strict`` is only ever to be called with arguments that fit its schema. Where the model may call it
or not, a guide of its calls constrains them from the marker on, if the contract takes one and the format of the calls
can be told; else finished arguments are checked, and the response says that nothing more was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sidecar.guidance.call_guide import CallFraming, CallGuide, CallGuideForm, call_guide
from sidecar.guidance.demands import (
    NO_ARGUMENTS,
    Guiding,
    answer_schema,
    argument_schemas,
    calls_guide,
    demanded_tools,
    document,
)
from sidecar.guidance.guides import Guide, unchecked
from sidecar.guidance.schemas import Schema
from sidecar.guidance.validation import fits
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.text_format import JsonSchemaFormat

Unguided = Literal["refuse", "prompt"]
"""What becomes of a demand on a model without guided decoding."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """How an answer is kept to its form.

    ``functions`` are those that may be called, with their parameters' schemas. ``guide`` is the JSON Schema for the
    runtime, for the whole answer from its first token on; ``demand`` is what the model is told in words instead.
    ``call_guide`` constrains the calls in an answer that is otherwise free, in the form that the contract takes.
    ``text_schema`` is what visible text is checked against, ``arguments`` what the arguments of strict and of demanded
    functions are. ``strict`` says of each function of the request whether it cannot be called with other arguments:
    by a guide, or because it cannot be called at all. ``demands_call`` is whether the answer has to hold a call. Of the
    schemas ``unchecked`` it is not known yet whether grammars can be made of them.
    """

    functions: Mapping[str, Mapping[str, Any]]
    guide: str | None = None
    demand: str | None = None
    call_guide: str | None = None
    text_schema: Schema | None = None
    arguments: Mapping[str, Schema] = field(default_factory=dict)
    strict: Mapping[str, bool] = field(default_factory=dict)
    demands_call: bool = False
    unchecked: Sequence[Guide] = ()

    def check_text(self, text: str) -> bool | None:
        """Whether the visible ``text`` is what was demanded; ``None`` if that takes too long to tell."""
        return self.text_schema is None or fits(text, self.text_schema)

    def check_arguments(self, name: str, arguments: str) -> bool | None:
        """Whether ``arguments``, JSON text, are such as the function ``name`` insists on; ``None`` as for a text."""
        schema = self.arguments.get(name)
        return schema is None or fits(arguments, schema)


def plan_guidance(
    request: ResponsesRequest,
    can_guide: bool,
    unguided: Unguided,
    *,
    framing: CallFraming | None = None,
    call_guide_form: CallGuideForm | None = None,
) -> Guidance:
    """The guidance for ``request``.

    ``framing`` is how the model writes a call, ``call_guide_form`` the guide of calls in free text that the contract
    takes; ``None`` where there is none.

    Raises:
        ApiError: ``invalid_request`` for a schema that is known to be of no use, ``unsupported_parameter`` for a demand
            that the model cannot be held to.
    """
    text = answer_schema(request)
    arguments = argument_schemas(request)
    functions = _functions(request)
    guides = [it.guide for it in (text, *arguments.values()) if it is not None]
    schemas = {name: it.schema for name, it in arguments.items()}
    if demanded_tools(request):
        guidance = _demand_calls(request, functions, arguments, guides, can_guide, unguided)
    elif text is not None and not functions:
        guidance = _demand_text(request, text, can_guide, unguided)
    else:
        calls = CallGuide()
        if any(tool.strict and tool.name in functions for tool in request.tools):
            calls = call_guide(functions, schemas, framing, call_guide_form)
        guidance = Guidance(
            functions,
            call_guide=calls.document,
            text_schema=None if text is None else text.schema,
            strict={tool.name: tool.name in calls.constrained or tool.name not in functions for tool in request.tools},
        )
    return replace(guidance, arguments=schemas, unchecked=unchecked(guides))


def _functions(request: ResponsesRequest) -> Mapping[str, Mapping[str, Any]]:
    """The functions that may be called, with the schemas of their arguments as the client wrote them."""
    tools = () if request.tool_choice == "none" else request.tools
    return {tool.name: NO_ARGUMENTS if tool.parameters is None else tool.parameters for tool in tools}


def _demand_calls(
    request: ResponsesRequest,
    functions: Mapping[str, Mapping[str, Any]],
    arguments: Mapping[str, Guiding],
    guides: list[Guide],
    can_guide: bool,
    unguided: Unguided,
) -> Guidance:
    demanded = demanded_tools(request)
    called = {tool.name: functions[tool.name] for tool in demanded}
    if not can_guide:
        words = f"Answer with a call of {' or '.join(called)}, and nothing else."
        strict = {tool.name: tool.name not in called for tool in request.tools}
        return Guidance(called, demand=_in_words(words, "tool_choice", unguided), strict=strict, demands_call=True)
    several = request.tool_choice == "required" and request.parallel_tool_calls
    guide = calls_guide(demanded, arguments, several=several)
    guides.append(guide)
    return Guidance(called, guide=guide.document, strict={tool.name: True for tool in request.tools}, demands_call=True)


def _demand_text(request: ResponsesRequest, text: Guiding, can_guide: bool, unguided: Unguided) -> Guidance:
    strict = {tool.name: True for tool in request.tools}
    if can_guide:
        return Guidance({}, guide=text.guide.document, text_schema=text.schema, strict=strict)
    # The client's own schema, since the model can read its descriptions.
    described = request.text.format.json_schema if isinstance(request.text.format, JsonSchemaFormat) else text.schema
    words = f"Answer with JSON that fits this JSON Schema, and nothing else:\n{document(described)}"
    return Guidance({}, demand=_in_words(words, "text.format", unguided), text_schema=text.schema, strict=strict)


def _in_words(words: str, param: str, unguided: Unguided) -> str:
    if unguided == "refuse":
        message = f"{param} cannot be kept to on this model: its runtime has no guided decoding."
        raise ApiError("unsupported_parameter", message, param)
    return words
