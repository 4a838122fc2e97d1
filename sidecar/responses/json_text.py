"""JSON values, and their text as the event stream carries it."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
"""A JSON object."""

# Made once: json.dumps makes one each time, which takes half of the time of a short event.
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_encode_string = json.encoder.c_encode_basestring or json.encoder.py_encode_basestring  # type: ignore[attr-defined]


def json_string(text: str) -> str:
    """``text`` as a JSON string, non-ASCII characters as they are, safe in a ``data:`` line."""
    encoded: str = _encode_string(text)
    return encoded if encoded.isascii() else _keep_on_one_line(encoded)


def json_bytes(value: Json) -> bytes:
    """``value`` as compact JSON in UTF-8, safe in a ``data:`` line."""
    return _keep_on_one_line(_encode(value)).encode()


def _keep_on_one_line(encoded: str) -> str:
    """Escape the characters of a JSON text at which many SSE readers split lines, although they should not."""
    if encoded.isascii():
        return encoded
    return encoded.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
