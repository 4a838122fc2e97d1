"""Regular expressions as the grammar engine reads them, in time that is linear in the text.

Python's own may take exponential time, and are not those of JSON Schema.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

# A byte of text then takes a microsecond or two, whatever the pattern. Patterns in use need a tenth of it.
_LIMITS = LLParserLimits(initial_lexer_fuel=50_000, step_lexer_fuel=2_000, max_lexer_states=2_000, verbose_errors=False)


def matches(pattern: str, text: str) -> bool | None:
    """Whether ``pattern`` is found in ``text``; ``None`` if the engine does not take it, or only at too high a cost."""
    matcher = _matcher(pattern)
    if matcher is None:
        return None
    matcher = matcher.deep_copy()
    tokens = _bytes().tokenize_bytes(json.dumps(text, ensure_ascii=False).encode())
    consumed = matcher.try_consume_tokens(tokens)
    if matcher.is_error():
        return None
    return bool(consumed == len(tokens) and matcher.is_accepting())


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> LLMatcher | None:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps({"type": "string", "pattern": pattern}))
    matcher = LLMatcher(_bytes(), grammar, log_level=0, limits=_LIMITS)
    return None if matcher.is_error() else matcher


@cache
def _bytes() -> LLTokenizer:
    """A vocabulary of single bytes."""
    return LLTokenizer("byte")
