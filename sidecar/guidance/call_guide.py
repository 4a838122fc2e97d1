"""Guides of the calls in an answer that is otherwise free: text, and from a call's marker on nothing but a call.

A runtime takes one of two forms. Structural tags (vLLM, ``structured_outputs``) name the texts around each function's
arguments and what sets them off. An EBNF grammar (TensorRT-LLM, ``ebnf_grammar``) describes the whole answer. A
function whose schema the form cannot express may be called with any object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sidecar.guidance.ebnf import Grammar, InexpressibleError, literal
from sidecar.guidance.schemas import Schema

CallGuideForm = Literal["structural_tag", "ebnf_grammar"]

_ANY_OBJECT: Schema = {"type": "object"}


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
    schemas = {name: arguments.get(name, _ANY_OBJECT) for name in functions}
    if form == "structural_tag":
        return CallGuide(_structural_tag(schemas, framing), frozenset(arguments).intersection(functions))
    return _ebnf_grammar(schemas, frozenset(arguments), framing)


def _structural_tag(schemas: Mapping[str, Schema], framing: CallFraming) -> str:
    """Source: vLLM's ``structural_tag``, the form of ``structures`` and ``triggers`` that all its versions take."""
    structures = [
        {"begin": f"{framing.begin}{name}{framing.middle}", "schema": schema, "end": framing.end}
        for name, schema in schemas.items()
    ]
    return json.dumps(
        {"type": "structural_tag", "structures": structures, "triggers": [framing.trigger]}, ensure_ascii=False
    )


def _ebnf_grammar(schemas: Mapping[str, Schema], named: frozenset[str], framing: CallFraming) -> CallGuide:
    grammar = Grammar()
    calls, constrained = [], set()
    for name, schema in schemas.items():
        begin = literal(f"{framing.begin.removeprefix(framing.trigger)}{name}{framing.middle}")
        try:
            rule = grammar.json(schema)
        except InexpressibleError:
            rule = grammar.json(_ANY_OBJECT)
        else:
            constrained.add(name)
        calls.append(f"{begin} {rule} {literal(framing.end)}")
    grammar.text_until(framing.trigger, calls)
    constrained &= named
    return CallGuide(grammar.document() if constrained else None, frozenset(constrained))
