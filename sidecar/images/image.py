"""What an image is before and after it has been read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image that a request names: its ``data:`` or http(s) URL, and ``param``, the URL's path in the request."""

    param: str
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Image:
    """A checked image, upright: an encoded file in ``data``, ``width`` and ``height`` in pixels."""

    mime: Literal["image/jpeg", "image/png"]
    data: bytes = field(repr=False)
    width: int
    height: int
