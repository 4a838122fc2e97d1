"""Guides of the calls in an answer that is otherwise free: text, and from a call's marker on nothing but a call.

A runtime takes one of two forms. Structural tags (vLLM, ``structured_outputs``) name the texts around each function's
arguments and what sets them off. An EBNF grammar (TensorRT-LLM, ``ebnf_grammar``) describes the whole answer. A
function whose schema the form cannot express may be called with any object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sidecar.guidance.ebnf import Grammar, InexpressibleError, literal
from sidecar.guidance.schemas import Schema
from sidecar.memory import remembered

CallGuideForm = Literal["structural_tag", "ebnf_grammar"]

Schemas = Mapping[str, Schema | None]
"""The self-contained schema of each function's arguments; ``None`` where any object will do."""

_ANY_OBJECT: Schema = {"type": "object"}
_REMEMBERED = 4_000_000
# Some hundred schemas; beyond, a runtime would compile for seconds.
_LONGEST_GRAMMAR = 256 * 1024


class CallFraming(Protocol):
    """How a model writes a call: ``begin``, the function's name, ``middle``, the arguments as JSON, ``end``.

    No text before a call holds ``trigger``, with which ``begin`` begins.
    """

    @property
    def trigger(self) -> str:
        """What is never written but at the beginning of a call."""

    @property
    def begin(self) -> str:
        """All that stands before the name."""

    @property
    def middle(self) -> str:
        """What stands between the name and the arguments."""

    @property
    def end(self) -> str:
        """What stands after the arguments."""


@dataclass(frozen=True, slots=True)
class CallGuide:
    """A guide, and the functions whose arguments it keeps to their schemas."""

    document: str | None = None
    constrained: frozenset[str] = frozenset()


def call_guide(
    functions: Mapping[str, Any],
    arguments: Mapping[str, Schema],
    framing: CallFraming | None,
    form: CallGuideForm | None,
) -> CallGuide:
    """A guide of calls of ``functions``, in which those in ``arguments`` are kept to these self-contained schemas.

    It holds nothing where the model's way to write calls is not known, where the contract takes no such guide, or where
    nothing could be constrained.
    """
    if framing is None or form is None:
        return CallGuide()
    schemas = {name: arguments.get(name) for name in functions}
    return _call_guide(json.dumps([form, schemas, [framing.trigger, framing.begin, framing.middle, framing.end]]))


@remembered(_REMEMBERED)
def _call_guide(text: str) -> CallGuide:
    form, schemas, framing = json.loads(text)
    make = _structural_tag if form == "structural_tag" else _ebnf_grammar
    return make(schemas, *framing)


def _structural_tag(schemas: Schemas, trigger: str, begin: str, middle: str, end: str) -> CallGuide:
    """Source: vLLM's ``structural_tag``, the form of ``structures`` and ``triggers``, which all its versions take."""
    structures = [
        {"begin": f"{begin}{name}{middle}", "schema": _ANY_OBJECT if schema is None else schema, "end": end}
        for name, schema in schemas.items()
    ]
    tag = {"type": "structural_tag", "structures": structures, "triggers": [trigger]}
    constrained = frozenset(name for name, schema in schemas.items() if schema is not None)
    return CallGuide(json.dumps(tag, ensure_ascii=False), constrained)


def _ebnf_grammar(schemas: Schemas, trigger: str, begin: str, middle: str, end: str) -> CallGuide:
    grammar = Grammar()
    any_object = grammar.json(_ANY_OBJECT)
    calls, constrained = [], set()
    for name, schema in schemas.items():
        arguments = any_object
        if schema is not None:
            with suppress(InexpressibleError):
                arguments = grammar.json(schema)
                constrained.add(name)
        calls.append(f"{literal(f'{begin.removeprefix(trigger)}{name}{middle}')} {arguments} {literal(end)}")
    grammar.text_until(trigger, calls)
    text = grammar.document()
    if not constrained or len(text) > _LONGEST_GRAMMAR:
        return CallGuide()
    return CallGuide(text, frozenset(constrained))
