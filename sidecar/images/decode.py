"""From a file that claims to be an image to one that is: recognised by its content, decoded whole, upright.

An image costs what it decodes to, not what it was sent as: its size in pixels is read from its head and checked before
any pixel is decoded, and so is the number of steps that its file takes. Of a moving picture only the first
frame is decoded. Decoders still find ways to take long, so they run where they can be ended.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from typing import Literal

# The plugin is imported by name, since Pillow would import all that it has for it.
from PIL import Image as Pillow
from PIL import ImageOps, WebPImagePlugin  # noqa: F401

from sidecar.images.image import Image
from sidecar.images.structure import check_structure
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

MEMORY_PER_PIXEL = 28
"""The bytes that decoding and converting take for a pixel, at most: those of a WebP file that lies on its side."""

# Pillow's own limit is the process's and warns only; ours is checked in its place.
Pillow.MAX_IMAGE_PIXELS = None


@dataclass(frozen=True, slots=True)
class Left:
    """What the other images of a request leave to one: pixels to decode, and bytes of the file that is passed on."""

    pixels: int
    bytes: int


def decode(data: bytes, max_pixels: int, left: Left | None = None) -> Image:
    """The image in ``data``: PNG, JPEG, WebP or GIF, of a moving picture the first frame.

    Takes up to :data:`MEMORY_PER_PIXEL` bytes of memory for each pixel, and time.

    Raises:
        ApiError: ``invalid_request`` for another format, a broken file, one of more scans or segments than images have,
            more pixels than ``max_pixels``, or than are ``left``; ``payload_too_large`` for a file that has more bytes
            than are left once it is converted.
        MemoryError: there is not enough.
    """
    check_structure(data)
    try:
        picture = Pillow.open(io.BytesIO(data), formats=_FORMATS)
    except MemoryError:
        raise
    except Exception as error:
        raise ApiError("invalid_request", "An image is not a PNG, JPEG, WebP or GIF file.") from error
    with picture:
        _check_pixels(picture.width, picture.height, max_pixels, left)
        try:
            image = _convert(picture, data)
        except MemoryError:
            raise
        except Exception as error:
            # Decoders of foreign bytes fail in many ways, and Pillow does not say which.
            raise ApiError("invalid_request", "An image is broken.") from error
    if left is not None and len(image.data) > left.bytes:
        raise ApiError("payload_too_large", f"An image has more than the {left.bytes} bytes that the others leave it.")
    return image


def decode_elsewhere(data: bytes, max_pixels: int, left: Left) -> Image:
    """What :func:`decode` returns, for another process: without ``data`` where it is what that process has already."""
    image = decode(data, max_pixels, left)
    return replace(image, data=b"") if image.data is data else image


def prepare() -> None:
    """Make a process ready for :func:`decode_elsewhere`."""
    Pillow.preinit()
    # They are about clients' files, which can bring as many as they have tags.
    warnings.simplefilter("ignore")


def _check_pixels(width: int, height: int, max_pixels: int, left: Left | None) -> None:
    if width * height > max_pixels:
        raise ApiError("invalid_request", f"An image has {width}×{height} pixels; at most {max_pixels} are accepted.")
    if left is not None and width * height > left.pixels:
        raise ApiError("invalid_request", f"An image has {width}×{height} pixels; the others leave it {left.pixels}.")


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
