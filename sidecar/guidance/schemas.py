"""Whether something is a JSON Schema. Nothing is ever fetched."""

from __future__ import annotations

import json
from typing import Any

from sidecar.guidance.dialects import dialect_of
from sidecar.guidance.shapes import shape_fault
from sidecar.memory import remembered

Schema = dict[str, Any]

_REMEMBERED = 16_000_000


@remembered(_REMEMBERED)
def schema_fault(document: str) -> str | None:
    """Where the JSON object ``document`` is no schema of its dialect, as ``.properties.a.type``; ``None`` if it is one.

    ``pattern`` is left to whoever has to match it.
    """
    schema = json.loads(document)
    return shape_fault(schema, dialect_of(schema))
