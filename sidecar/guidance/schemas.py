"""Whether something is a JSON Schema, whether decoding can be guided by it, and whether an answer fits it.

Every function here is a pure function of texts and schemas, so that it may run anywhere. Nothing is ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NoReturn

import jsonschema
from llguidance import LLMatcher, LLTokenizer
from referencing import Registry

from sidecar.guidance.dialects import dialect_of
from sidecar.guidance.remember import remembered
from sidecar.guidance.shapes import shape_fault

Schema = dict[str, Any]

_REMEMBERED = 16_000_000
_REASON_LENGTH = 100


@remembered(_REMEMBERED)
def schema_fault(document: str) -> str | None:
    """Where the JSON object ``document`` is no schema of its dialect, as ``.properties.a.type``; ``None`` if it is one.

    ``pattern`` is left to whoever has to match it.
    """
    schema = json.loads(document)
    return shape_fault(schema, dialect_of(schema))


@remembered(_REMEMBERED)
def guide_fault(document: str) -> str | None:
    """Why no grammar can be made of the schema ``document``, in words that can be shown; ``None`` if one can."""
    fault = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(document))
    return "".join(filter(str.isprintable, fault.splitlines()[0]))[:_REASON_LENGTH] if fault else None


def fits(text: str, schema: Schema) -> bool:
    """Whether ``text`` is JSON that fits ``schema``, which is self-contained."""
    try:
        value = json.loads(text, parse_constant=_no_number)
        return bool(_Validator(schema, registry=_NOTHING_ELSE).is_valid(value))
    except (ValueError, ArithmeticError, RecursionError):
        return False


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _matches(pattern: str, text: str) -> bool:
    """Whether ``pattern`` is found in ``text``, in time that is linear in it.

    The grammar engine decides, as it does while decoding is guided. A pattern that it does not take decides nothing.
    """
    matcher = _pattern_matcher(pattern)
    if matcher is None:
        return True
    matcher = matcher.deep_copy()
    tokens = _bytes().tokenize_bytes(json.dumps(text, ensure_ascii=False).encode())
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


@lru_cache(maxsize=256)
def _pattern_matcher(pattern: str) -> LLMatcher | None:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps({"type": "string", "pattern": pattern}))
    return None if LLMatcher.validate_grammar(grammar) else LLMatcher(_bytes(), grammar, log_level=0)


@cache
def _bytes() -> LLTokenizer:
    """A vocabulary of single bytes."""
    return LLTokenizer("byte")


def _check_pattern(_validator: Any, pattern: str, value: Any, _schema: Schema) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield jsonschema.ValidationError("pattern")


def _check_pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Schema
) -> Iterator[jsonschema.ValidationError]:
    for pattern, schema in patterns.items() if isinstance(value, dict) else ():
        for name, member in value.items():
            if _matches(pattern, name):
                yield from validator.descend(member, schema)


def _check_additional_properties(
    validator: Any, additional: Any, value: Any, schema: Schema
) -> Iterator[jsonschema.ValidationError]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, member in value.items() if isinstance(value, dict) else ():
        if name not in known and not any(_matches(pattern, name) for pattern in patterns):
            yield from validator.descend(member, additional)


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
    },
)
"""Python's own regular expressions may take exponential time, and are not those of JSON Schema."""
_NOTHING_ELSE: Registry[Any] = Registry()
