"""Responses that repeat an earlier one of their stream, all but some contents: read without parsing them.

Nearly every response of a generation is of this kind: another token in the same place. Protobuf tells what a message
holds by tags and lengths, never by contents. So where all bytes equal those of a message that has been parsed, but for
bytes inside the contents of its tensors (``raw_output_contents``), a parser finds the same message with these contents.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from struct import Struct
from typing import Any, NamedTuple

from sidecar.backends.backend import Piece
from sidecar.backends.triton.frames import Frame, payload_of
from sidecar.backends.triton.protocol import service_pb2

_RAW_OUTPUT_CONTENTS = 0x32
"""The tag of a content: the member's number, 6, and wire type 2, a length and so many bytes."""
_MOST_BYTES = 127
"""Of a content: the length of a longer one takes more than a byte. An ordinary token has none."""


class Varying(NamedTuple):
    """What may differ in a response that repeats another one, by the places of its outputs.

    ``take`` makes a piece of the elements of the content at ``place``, which :mod:`struct` reads by ``form``. Contents
    at ``ignored`` places mean nothing.
    """

    place: int
    form: str
    ignored: Collection[int]
    take: Callable[[Sequence[Any]], Piece]


class Repeat(NamedTuple):
    """How a frame is read that repeats another one of the same length.

    ``unpack`` gives the bytes before the content that varies, which must be ``head``, its elements up to ``end``, and
    the runs of bytes behind it, which must be ``rest``. It leaves out what is ignored.
    """

    unpack: Callable[[bytes], tuple[Any, ...]]
    head: bytes
    end: int
    rest: tuple[bytes, ...]
    take: Callable[[Sequence[Any]], Piece]


def repeat_of(frame: Frame, response: service_pb2.ModelInferResponse, varying: Varying) -> Repeat | None:
    """How to read what repeats ``frame``, which holds ``response``; ``None`` where its contents are not its last bytes.

    An ignored content before the one that varies is taken for one that must be the same.
    """
    contents = list(response.raw_output_contents)
    if len(contents) != len(response.outputs) or max(map(len, contents)) > _MOST_BYTES:
        return None
    place, content = varying.place, contents[varying.place]
    fields = [bytes((_RAW_OUTPUT_CONTENTS, len(content))) + content for content in contents]
    head = frame[: len(frame) - sum(map(len, fields[place:])) + 2]
    # Behind the content: runs of bytes that are the same, and of bytes that are ignored.
    parts: list[tuple[bool, bytes]] = []
    for other, field in enumerate(fields[place + 1 :], place + 1):
        parts += [(True, field[:2]), (other not in varying.ignored, field[2:])]
    runs = [(same, b"".join(data for _, data in run)) for same, run in groupby(parts, key=lambda part: part[0])]
    if frame != head + content + b"".join(data for _, data in runs) or not _is_the_content(frame, len(head), place):
        return None
    layout = Struct(f"<{len(head)}s{varying.form}" + "".join(f"{len(data)}{'xs'[same]}" for same, data in runs))
    rest = tuple(data for same, data in runs if same)
    return Repeat(layout.unpack, head, len(layout.unpack(frame)) - len(rest), rest, varying.take)


def _is_the_content(frame: Frame, at: int, place: int) -> bool:
    """Whether the byte at ``at`` is the first one of the content at ``place``, and not one of its like elsewhere."""
    changed = frame[:at] + bytes((frame[at] ^ 0xFF,)) + frame[at + 1 :]
    response = service_pb2.ModelStreamInferResponse.FromString(payload_of(changed)).infer_response
    return bool(response.raw_output_contents[place][0] == changed[at])
