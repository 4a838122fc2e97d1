"""Images inside the request: ``data:`` URLs.

Source: RFC 2397, read as leniently as browsers do (WHATWG Fetch, "data: URL processor"): white space and missing
padding in the base64 are forgiven. The media type is not read, since clients get it wrong; the bytes tell it.
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from sidecar.images.errors import too_large
from sidecar.responses.errors import ApiError

_SCHEME = "data:"
_SPACE = b"\t\n\f\r "


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
    encoded = (unquote_to_bytes(payload) if "%" in payload else payload.encode()).translate(None, _SPACE)
    encoded = encoded.rstrip(b"=")
    if len(encoded) * 3 // 4 > max_bytes:
        raise too_large(max_bytes)
    try:
        return base64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except binascii.Error as error:
        raise ApiError("invalid_request", "The base64 of an image is broken.") from error
