"""The scans of a JPEG: each is a pass over the whole image, and costs as much however few bytes it has.

Source: ITU-T T.81, B.1 and B.2. Markers are found as decoders find them: what stands between two segments is skipped.
"""

from __future__ import annotations

import re

START = b"\xff\xd8"
"""What a JPEG starts with."""

_END_OF_IMAGE, _START_OF_SCAN = 0xD9, 0xDA
# Not a marker: a stuffed byte, a fill byte, and the restarts inside a scan.
_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
_ALONE = frozenset({0x01, 0xD8})
"""Those that no length follows."""


def has_more_scans(data: bytes, count: int) -> bool:
    """Whether the first image of ``data``, which is a JPEG's, has more than ``count`` scans."""
    scans, at = 0, len(START)
    while (found := _MARKER.search(data, at)) and scans <= count:
        marker, at = found[1][0], found.end()
        if marker == _END_OF_IMAGE:
            break
        if marker not in _ALONE:
            at += int.from_bytes(data[at : at + 2], "big")
        scans += marker == _START_OF_SCAN
    return scans > count
