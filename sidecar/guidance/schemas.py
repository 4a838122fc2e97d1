"""Whether something is a JSON Schema, and whether decoding can be guided by it.

Both are pure functions of a text, so that they may run anywhere. Nothing is ever fetched.
"""

from __future__ import annotations

import json
from typing import Any

from llguidance import LLMatcher

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
    if not fault:
        return None
    # A pattern that cannot be read is quoted and pointed at between the first line and the reason, the last one.
    first, *others = fault.splitlines()
    reason = f"{first} {others[-1].removeprefix('error: ')}" if others and first.endswith(":") else first
    return "".join(filter(str.isprintable, reason))[:_REASON_LENGTH]
