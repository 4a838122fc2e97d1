"""Images made to cost a reader more than they cost their sender."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from PIL import Image as Pillow

LARGEST = (8000, 5000)
"""The size of an image of as many pixels as one may have by default, 40 million."""


def encoded(picture: Pillow.Image, format: str, **options: Any) -> bytes:
    """``picture`` as a file."""
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def flat(format: str, size: tuple[int, int] = LARGEST, mode: str = "RGB", **options: Any) -> bytes:
    """A picture of one colour: a few kilobytes that decode to as many bytes as a photograph."""
    return encoded(Pillow.new(mode, size), format, **options)


def scans(count: int, size: tuple[int, int] = LARGEST) -> bytes:
    """A progressive JPEG whose last scan is repeated until there are ``count``: each is a pass over the whole image."""
    whole = flat("JPEG", size, progressive=True)
    last = whole.rindex(b"\xff\xda")
    scan, end = whole[last:-2], whole[-2:]
    return whole[:-2] + scan * (count - whole.count(b"\xff\xda")) + end


def frames(format: str, count: int, size: tuple[int, int]) -> bytes:
    """A moving picture of ``count`` frames, no two neighbours alike."""
    pictures = [Pillow.new("RGB", size, (index % 2 * 255, index % 251, 0)) for index in range(count)]
    return encoded(pictures[0], format, save_all=True, append_images=pictures[1:], duration=10)


def comments(count: int, blocks: int = 1) -> bytes:
    """A GIF before whose picture stand ``count`` comments of so many ``blocks``, which Pillow joins one by one."""
    small = flat("GIF", (1, 1), "P")
    picture = small.index(b"\x2c")
    return small[:picture] + (b"\x21\xfe" + b"\x01x" * blocks + b"\x00") * count + small[picture:]


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_chunks(chunks: Sequence[bytes]) -> bytes:
    """A small PNG with ``chunks`` before its picture."""
    small = flat("PNG", (1, 1))
    picture = small.index(b"IDAT") - 4
    return small[:picture] + b"".join(chunks) + small[picture:]


def texts(count: int) -> bytes:
    """A PNG with ``count`` compressed texts of a megabyte each."""
    text = zlib.compress(bytes(1024 * 1024 - 1), 9)
    return with_chunks([chunk(b"zTXt", b"%d\0\0%b" % (index, text)) for index in range(count)])


def chunks(count: int) -> bytes:
    """A PNG with ``count`` chunks of nothing."""
    return with_chunks([chunk(b"teXt", b"")] * count)


def tags() -> bytes:
    """A PNG whose EXIF has 65,535 tags, each of which lies about its size."""
    entries = (struct.pack(">HHII", tag, 1, 2**31, 8) for tag in range(65_535))
    return with_chunks([chunk(b"eXIf", b"MM\x00*" + struct.pack(">IH", 8, 65_535) + b"".join(entries))])


def tiles(format: str, size: tuple[int, int] = LARGEST, **options: Any) -> bytes:
    """A small file that is large in any format without a memory: one tile of noise, again and again."""
    tile = Pillow.frombytes("RGB", (64, 64), random.Random(1).randbytes(64 * 64 * 3))
    row = Pillow.new("RGB", (size[0], 64))
    for left in range(0, size[0], 64):
        row.paste(tile, (left, 0))
    picture = Pillow.new("RGB", size)
    for top in range(0, size[1], 64):
        picture.paste(row, (0, top))
    return encoded(picture, format, **options)
