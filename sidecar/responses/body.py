"""The bytes of a request body, read as one strict JSON object.

Python's ``json`` takes more than JSON: ``NaN``, numbers that overflow to infinity, duplicate keys, halves of surrogate
pairs. Each of them means something else to the next reader, so each is refused here, before anything looks at a value.
"""

from __future__ import annotations

import json
from math import isinf
from typing import Any, NoReturn

from sidecar.responses.body_bounds import check_bounds
from sidecar.responses.errors import ApiError
from sidecar.responses.wording import shown


def parse_json_body(body: bytes) -> dict[str, Any]:
    """Read a UTF-8 body that holds one JSON object; a leading byte order mark is skipped, as RFC 8259 allows.

    Raises :class:`ApiError` ``invalid_request`` for anything that is not such an object: malformed JSON or UTF-8,
    duplicate keys, ``NaN`` or infinite numbers, lone surrogates; and for one that :func:`check_bounds` refuses.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _invalid("The request body is not valid UTF-8.") from None
    # Before parsing, so that the parser's own recursion is bounded too.
    check_bounds(body)
    value = _parse(text)
    if not isinstance(value, dict):
        raise _invalid("The request body must be a JSON object.")
    if b"\\u" in body:
        _refuse_lone_surrogates(value)
    return value


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _invalid(f"The request body is not valid JSON (line {error.lineno}, column {error.colno}).") from None
    except ValueError:
        # Python refuses to read an integer of thousands of digits.
        raise _invalid("The request body holds a number that is too large.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _invalid(f"The request body holds the key '{shown(twice)}' twice in one object.")
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise _invalid("The request body holds a number that is too large.")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _invalid(f"The request body holds {name}, which is not JSON.")


# Made once: json.loads makes one each time.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant)


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _invalid("The request body holds half of a surrogate pair, which is not a character.") from None


def _invalid(message: str) -> ApiError:
    return ApiError("invalid_request", message)
