"""Guided decoding: TensorRT-LLM's guide types as grammars of the engine."""

import json
import re
from typing import Any

from flavours.inputs import Rejected
from llguidance import LLMatcher

# The engine hands a grammar with this first line to LLGuidance.
_LLGUIDANCE = "%llguidance {}\n"
_ANY_JSON = {"type": ["object", "array", "string", "number", "boolean", "null"]}


def grammar(kind: str, guide: str | None) -> str:
    """The grammar for ``guided_decoding_guide_type`` and ``guided_decoding_guide``.

    The engine generates freely when LLGuidance refuses a grammar, so that is found out here. An ``ebnf_grammar`` is
    checked by the engine itself.

    Raises:
        Rejected: the type is unknown, the guide is missing, or it cannot be compiled.
    """
    if kind == "json":
        return _checked(_json_grammar(_ANY_JSON))
    if guide is None:
        raise Rejected(f"A value is required for guided_decoding_guide of type {kind}")
    if kind == "json_schema":
        return _checked(_json_grammar(_parsed(guide)))
    if kind == "regex":
        return _checked(f"start: /{_escaped(guide)}/")
    if kind == "ebnf_grammar":
        return guide
    raise Rejected(f"Unknown guided_decoding_guide_type {kind}")


def _json_grammar(schema: Any) -> str:
    # Without free white space: a small model that may write line breaks writes little else.
    if isinstance(schema, dict):
        schema = {"x-guidance": {"whitespace_flexible": False}, **schema}
    return f"start: %json {json.dumps(schema)}"


def _parsed(schema: str) -> Any:
    try:
        return json.loads(schema)
    except ValueError as error:
        raise Rejected(f"guided_decoding_guide is not JSON: {error}") from error


def _escaped(regex: str) -> str:
    """The expression as it stands between slashes: slashes escaped, unless they are."""
    return re.sub(r"\\.|/|\n", lambda found: {"/": r"\/", "\n": r"\n"}.get(found[0], found[0]), regex)


def _checked(rules: str) -> str:
    if error := LLMatcher.validate_grammar(_LLGUIDANCE + rules):
        raise Rejected(f"The guide cannot be compiled: {error}")
    return _LLGUIDANCE + rules
