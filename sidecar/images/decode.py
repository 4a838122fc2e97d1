"""From a file that claims to be an image to one that is: recognised by its content, decoded whole, upright.

An image costs what it decodes to, not what it was sent as: its size in pixels is read from its head and checked before
any pixel is decoded.
"""

from __future__ import annotations

import io
from typing import Literal

# The plugin is imported by name, since Pillow would import all that it has for it.
from PIL import Image as Pillow
from PIL import ImageOps, WebPImagePlugin  # noqa: F401

from sidecar.images.image import Image
from sidecar.responses.errors import ApiError

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
# What model runtimes read; such a file is passed on as it is. An "MPO" was opened as a JPEG, and has further pictures
# behind the first, as phones write them.
_PASSED_ON: dict[str | None, Literal["image/jpeg", "image/png"]] = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
}
_UPRIGHT = 1
_JPEG_QUALITY = 95

# Pillow's own limit is the process's and warns only; ours is checked in its place.
Pillow.MAX_IMAGE_PIXELS = None


def decode(data: bytes, max_pixels: int) -> Image:
    """The image in ``data``: PNG, JPEG, WebP or GIF, of a moving picture the first frame.

    Takes up to four bytes of memory per pixel, and time; callers run it off the event loop.

    Raises:
        ApiError: ``invalid_request`` for another format, a broken file, or more than ``max_pixels``.
    """
    try:
        picture = Pillow.open(io.BytesIO(data), formats=_FORMATS)
    except Exception as error:
        raise ApiError("invalid_request", "An image is not a PNG, JPEG, WebP or GIF file.") from error
    with picture:
        if picture.width * picture.height > max_pixels:
            size = f"{picture.width}×{picture.height}"
            raise ApiError("invalid_request", f"An image has {size} pixels; at most {max_pixels} are accepted.")
        try:
            return _convert(picture, data)
        except Exception as error:
            # Decoders of foreign bytes fail in many ways, and Pillow does not say which.
            raise ApiError("invalid_request", "An image is broken.") from error


def _convert(picture: Pillow.Image, data: bytes) -> Image:
    # A file that is passed on is decoded all the same: the model runtime must not be the first to find it broken.
    picture.load()
    orientation = picture.getexif().get(0x0112, _UPRIGHT)
    if picture.format in _PASSED_ON and orientation == _UPRIGHT:
        return Image(_PASSED_ON[picture.format], data, picture.width, picture.height)
    upright = ImageOps.exif_transpose(picture)
    if picture.format in {"PNG", "GIF"} or upright.has_transparency_data:
        return Image("image/png", _encode(upright, "PNG"), upright.width, upright.height)
    return Image("image/jpeg", _encode(upright.convert("RGB"), "JPEG"), upright.width, upright.height)


def _encode(picture: Pillow.Image, format: Literal["PNG", "JPEG"]) -> bytes:
    file = io.BytesIO()
    # A level of 1 is many times faster than the default and little larger.
    options = {"compress_level": 1} if format == "PNG" else {"quality": _JPEG_QUALITY}
    picture.save(file, format, **options)
    return file.getvalue()
