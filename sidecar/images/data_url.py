"""Images inside the request: ``data:`` URLs.

Source: RFC 2397, read as leniently as browsers do (WHATWG Fetch, "data: URL processor"): white space and missing
padding in the base64 are forgiven. The media type is not read, since clients get it wrong; the bytes tell it.
"""

from __future__ import annotations

import base64
import binascii

from sidecar.images.errors import too_large
from sidecar.responses.errors import ApiError

_SCHEME = "data:"
_SPACE = b"\t\n\f\r "
# What base64 has that a URL may write otherwise. Only these are looked for: to undo any escape takes an object for each
# of what may be millions.
_ESCAPES = tuple(
    (escape, character.encode())
    for character in "+/=\t\n\f\r "
    for escape in {f"%{ord(character):02X}".encode(), f"%{ord(character):02x}".encode()}
)


def is_data_url(url: str) -> bool:
    """Whether ``url`` holds its content itself."""
    return url[: len(_SCHEME)].lower() == _SCHEME


def read_data_url(url: str, max_bytes: int) -> bytes:
    """The content of a base64 ``data:`` URL.

    Raises:
        ApiError: ``payload_too_large`` for more than ``max_bytes`` of content, ``invalid_request`` for anything that
            is not base64.
    """
    head, comma, payload = url.partition(",")
    if not comma or not head.rstrip().lower().endswith(";base64"):
        raise ApiError("invalid_request", "An image in a data URL must be base64: data:image/png;base64,…")
    encoded = _unescaped(payload).translate(None, _SPACE).rstrip(b"=")
    if len(encoded) * 3 // 4 > max_bytes:
        raise too_large(max_bytes)
    try:
        return base64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except binascii.Error as error:
        raise ApiError("invalid_request", "The base64 of an image is broken.") from error


def _unescaped(payload: str) -> bytes:
    encoded = payload.encode()
    if b"%" in encoded:
        for escape, character in _ESCAPES:
            encoded = encoded.replace(escape, character)
    return encoded
