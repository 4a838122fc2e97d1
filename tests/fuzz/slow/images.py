"""Files that claim to be images."""

from __future__ import annotations

import base64
import io
import random
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

from PIL import Image as Pillow

from sidecar.images.decode import Left, decode_elsewhere, prepare
from sidecar.responses.errors import ApiError
from tests.fuzz.slow.search import Target
from tests.hostile import images

SECONDS = 0.02
SECONDS_PER_BYTE = 5e-7
SECONDS_PER_PIXEL = 1e-7
MOST_PIXELS = 1_000_000
_SMALL = (64, 48)
_PIECES = [
    *(
        b"\xff\xda",
        b"\xff\xc2",
        b"\xff\xc4",
        b"\xff\xd0",
        b"\xff\xfe\x00\x02",
        b"\xff\xe1\x00\x08Exif\0\0",
        b"\0",
        b"\xff",
    ),
    *(
        b"IDAT",
        b"acTL",
        b"fcTL",
        b"tEXt",
        b"zTXt",
        b"iCCP",
        b"eXIf",
        b"!\xfe\x01x\0",
        b"!\xf9\x04\0\0\0\0\0",
        b"VP8X",
        b"ANMF",
    ),
]


class Images(Target[bytes]):
    """Files of up to 300 KB and a million pixels."""

    most_bytes = 300_000

    def __init__(self) -> None:
        prepare()

    def seeds(self) -> Sequence[bytes]:
        """Each format, plain, and as those that were slow once have it."""
        noise = Pillow.frombytes("RGB", _SMALL, random.Random(1).randbytes(_SMALL[0] * _SMALL[1] * 3))
        plain = [images.encoded(noise, kind) for kind in ("PNG", "JPEG", "WEBP", "GIF")]
        wide = [images.flat(kind, (1000, 1000)) for kind in ("PNG", "JPEG", "WEBP", "GIF")]
        progressive = images.encoded(noise, "JPEG", progressive=True)
        moving = [images.frames(kind, 3, _SMALL) for kind in ("PNG", "WEBP", "GIF")]
        return [*plain, *wide, progressive, *moving, images.scans(12, _SMALL), images.comments(10), images.chunks(10)]

    def changed(self, old: bytes, other: bytes, chance: random.Random) -> bytes:
        """``old`` with bytes changed, repeated, left out or taken from ``other``."""
        begin = chance.randrange(len(old) + 1)
        end = min(len(old), begin + chance.choice((1, 2, 8, 64, 1024, 65_536)))
        match chance.randrange(6):
            case 0:
                new = chance.randbytes(chance.choice((1, 2, 4)))
            case 1:
                new = old[begin:end] * chance.choice((2, 16, 256))
            case 2:
                new = b""
            case 3:
                start = chance.randrange(len(other) + 1)
                new = old[begin:end] + other[start : start + chance.choice((8, 64, 4096))]
            case 4:
                new = chance.choice(_PIECES) * chance.choice((1, 4, 200)) + old[begin:end]
            case _:
                number = chance.choice((0, 1, 2, 255, 1000, 65_535, 2**31 - 1))
                new = struct.pack(chance.choice("<>") + chance.choice("HI"), number & 0xFFFF)
        return (old[:begin] + new + old[end:]) or old

    def text(self, input: bytes) -> str:
        """The file in Base64."""
        return base64.b64encode(input).decode()

    def size(self, input: bytes) -> int:
        """The bytes of the file."""
        return len(input)

    def share(self, input: bytes) -> float:
        """By CPU time, of all threads."""
        before = time.process_time()
        with suppress(ApiError, MemoryError):
            decode_elsewhere(input, MOST_PIXELS, Left(MOST_PIXELS, 10 * images.LARGEST[0]))
        took = time.process_time() - before
        return took / (SECONDS + SECONDS_PER_BYTE * len(input) + SECONDS_PER_PIXEL * _pixels(input))


def _pixels(file: bytes) -> int:
    """As many as the file says it has, and are decoded."""
    try:
        with Pillow.open(io.BytesIO(file)) as picture:
            return min(picture.width * picture.height, MOST_PIXELS)
    except Exception:
        return 0
