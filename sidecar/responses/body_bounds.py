"""What a request body may cost: bounds on its values, nesting, keys and numbers, checked before any object is made.

A parser makes an object per value while no other thread runs, so ten megabytes of ``[],[],…`` would stop a whole
worker for seconds. A few passes of C code over the bytes tell how much there is to make.
"""

from __future__ import annotations

import re
from itertools import accumulate

from sidecar.responses.errors import ApiError

MAX_DEPTH = 64
"""Levels of arrays and objects a body may have, the outermost object included."""

MAX_VALUES = 200_000
"""Values a body may hold, arrays and objects included: thousands of items with dozens of members each."""

MAX_KEY_BYTES = 4096
"""Bytes of a key, as it is written."""

MAX_DIGITS = 1000
"""Digits in a row in a number: reading an integer takes the square of their number."""

_WHITE_SPACE = b" \t\r\n"
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))


def check_bounds(body: bytes) -> int:
    """The number of values in a body, arrays and objects included: exact for JSON, else no less than a parser makes.

    Raises :class:`ApiError` ``invalid_request`` for a body, JSON or not, that is dear to parse.
    """
    masked = _without_escapes(body)
    # Each value is at most two strings: its key and itself.
    if masked.count(b'"') > 4 * MAX_VALUES:
        raise _too_many_values()
    pieces = masked.split(b'"')
    outside = _outside_strings(pieces)
    opened = outside.count(b"[") + outside.count(b"{")
    if _depth(outside, opened) > MAX_DEPTH:
        raise _invalid(f"The request body is nested deeper than {MAX_DEPTH} levels.")
    filled = opened - outside.count(b"[]") - outside.count(b"{}")
    values = 1 + outside.count(b",") + filled
    if values > MAX_VALUES:
        raise _too_many_values()
    if _LONG_NUMBER.search(outside):
        raise _invalid(f"The request body holds a number that is too large: more than {MAX_DIGITS} digits.")
    _check_keys(pieces)
    return values


def nesting(body: bytes) -> int:
    """The levels of arrays and objects in a JSON text, the outermost one included."""
    outside = _outside_strings(_without_escapes(body).split(b'"'))
    return _depth(outside, outside.count(b"[") + outside.count(b"{"))


def _without_escapes(body: bytes) -> bytes:
    # Neither changes the length, which is fastest: escapes that could be taken for the end of a string.
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def _outside_strings(pieces: list[bytes]) -> bytes:
    # A quotation mark stays for each string: an array that holds one is not empty.
    return b'"'.join(pieces[::2]).translate(None, _WHITE_SPACE)


def _depth(outside: bytes, opened: int) -> int:
    """The levels of nesting, counted as far as a parser can get, and no further than to refuse."""
    # No parser reads on after more brackets are closed than opened.
    last = 2 * min(opened, MAX_VALUES)
    brackets = outside.translate(None, _NOT_BRACKETS)[:last]
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def _check_keys(pieces: list[bytes]) -> None:
    """Every other one of ``pieces`` stands inside a string; one that a colon follows is a key."""
    for index in range(1, len(pieces) - 1, 2):
        if len(pieces[index]) > MAX_KEY_BYTES and pieces[index + 1].lstrip(_WHITE_SPACE).startswith(b":"):
            raise _invalid(f"The request body holds a key of more than {MAX_KEY_BYTES} bytes.")


def _too_many_values() -> ApiError:
    return _invalid(f"The request body holds more than {MAX_VALUES} values.")


def _invalid(message: str) -> ApiError:
    return ApiError("invalid_request", message)
