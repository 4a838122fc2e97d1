"""JSON of an upstream: what cannot be read is not its protocol, and what is read can be written again."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from sidecar.backends.native.failures import NOT_ITS_PROTOCOL
from sidecar.responses.body_bounds import nesting
from sidecar.responses.json_text import Json

_MOST_LEVELS = 256
_encode = json.JSONEncoder(ensure_ascii=False).encode


def read_object(data: bytes) -> Json:
    """The object that ``data`` is; half a surrogate pair in it becomes U+FFFD, which any encoding can hold.

    Raises:
        BackendError: it is none.
    """
    # What is nested deeply may be read, and not be written any more.
    if data.count(b"[") + data.count(b"{") > _MOST_LEVELS and nesting(data) > _MOST_LEVELS:
        raise NOT_ITS_PROTOCOL.error("JSON without a bottom")
    try:
        value = json.loads(data, parse_constant=_refuse)
    except ValueError as error:
        raise NOT_ITS_PROTOCOL.error("no JSON") from error
    if not isinstance(value, dict):
        raise NOT_ITS_PROTOCOL.error("no JSON object")
    return _whole_characters(value) if b"\\u" in data else value


def count_of(value: Any) -> int:
    """A count of tokens; 0 where ``value`` is none that could be one."""
    return value if type(value) is int and 0 <= value < 1 << 31 else 0


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _whole_characters(value: Json) -> Json:
    text = _encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        mended: Json = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        return mended
    return value
