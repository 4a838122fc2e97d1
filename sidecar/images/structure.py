"""What a file is made of, counted before it is decoded: decoders go through all of it, whatever it shows.

A scan of a JPEG is a pass over the whole image however few bytes it has, and of the segments, chunks and blocks that
stand around pixels a file can hold millions.

Sources: ITU-T T.81, B.1 and B.2 (JPEG); W3C PNG, 5.3; GIF89a, 15 to 26. As decoders do, JPEG's markers are looked for
where a segment has ended, and what stands before them is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from sidecar.responses.errors import ApiError

# Progressive files have about ten, from the most ambitious of encoders some twenty.
_MAX_SCANS = 32
# A PNG of 10 MiB in chunks of 8 KiB has 1,300; a GIF with a colour profile of a megabyte has 4,000 blocks before its
# first picture.
_MAX_PIECES = 20_000

_JPEG, _PNG, _GIF = b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"GIF8"

# Not a stuffed byte, a fill byte, or one of the restarts inside a scan.
_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
_END_OF_IMAGE, _START_OF_SCAN = 0xD9, 0xDA
# No length follows these.
_ALONE = frozenset({0x01, 0xD8})

_PNG_FRAME = 12
"""The bytes of a chunk that are not its content."""

_GIF_HEAD, _GIF_EXTENSION = 13, 0x21


def check_structure(data: bytes) -> None:
    """Raises :class:`ApiError` ``invalid_request`` where ``data`` takes more steps to read than an image does."""
    scans = 0
    for count, piece in enumerate(islice(_pieces(data), _MAX_PIECES + 1), 1):
        scans += piece == _START_OF_SCAN
        if scans > _MAX_SCANS:
            raise ApiError("invalid_request", f"An image is a JPEG of more than {_MAX_SCANS} scans.")
        if count > _MAX_PIECES:
            raise ApiError("invalid_request", f"An image is made of more than {_MAX_PIECES} segments.")


def _pieces(data: bytes) -> Iterator[int]:
    """One number for each piece, of a JPEG its marker; of other files none."""
    readers: tuple[tuple[bytes, Callable[[bytes], Iterator[int]]], ...]
    readers = ((_JPEG, _jpeg_markers), (_PNG, _png_chunks), (_GIF, _gif_blocks))
    for start, read in readers:
        if data.startswith(start):
            return read(data)
    return iter(())


def _jpeg_markers(data: bytes) -> Iterator[int]:
    at = len(_JPEG)
    while found := _MARKER.search(data, at):
        marker, at = found[1][0], found.end()
        if marker == _END_OF_IMAGE:
            return
        yield marker
        if marker not in _ALONE:
            at += int.from_bytes(data[at : at + 2], "big")


def _png_chunks(data: bytes) -> Iterator[int]:
    at = len(_PNG)
    while at < len(data):
        yield 0
        at += int.from_bytes(data[at : at + 4], "big") + _PNG_FRAME


def _gif_blocks(data: bytes) -> Iterator[int]:
    """The blocks before the first picture."""
    colours = data[10:11]
    at = _GIF_HEAD + (3 << (colours[0] & 7) + 1 if colours and colours[0] & 0x80 else 0)
    while data[at : at + 1] == bytes([_GIF_EXTENSION]):
        at += 2
        while size := int.from_bytes(data[at : at + 1], "big"):
            yield 0
            at += size + 1
        yield 0
        at += 1
