"""The schemas that a request's decoding is guided by, and what is known of whether grammars can be made of them.

To make a grammar may take long, so it is done elsewhere (:mod:`sidecar.guidance.engine`), once for each schema: what
came of it is remembered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sidecar.memory import Memory
from sidecar.responses.errors import ApiError

# Looked at in one go: so much text takes a second at most, and then it is another client's turn.
_MOST_TEXT = 64 * 1024

_faults = Memory[str | None](16_000_000)


@dataclass(frozen=True, slots=True)
class Guide:
    """A self-contained schema as text.

    ``param`` is where the client has given what it was made of, ``name`` what that is called in an error.
    """

    document: str
    param: str
    name: str = "this JSON Schema"

    def refusal(self, reason: str) -> ApiError:
        """The error of a guide that cannot be one."""
        return ApiError("invalid_request", f"Decoding cannot be guided by {self.name}: {reason}", self.param)


def unchecked(guides: Iterable[Guide]) -> tuple[Guide, ...]:
    """Those of ``guides`` of which it is not known whether a grammar can be made.

    Raises:
        ApiError: ``invalid_request``: of one of them it is known that none can.
    """
    unknown = []
    for guide in guides:
        try:
            fault = _faults[guide.document]
        except KeyError:
            unknown.append(guide)
            continue
        if fault is not None:
            raise guide.refusal(fault)
    return tuple(unknown)


def note(guides: Sequence[Guide], faults: Sequence[str | None]) -> None:
    """Remember for each of ``guides`` why no grammar can be made of it, or ``None`` where one can.

    Raises:
        ApiError: ``invalid_request``: of one of them none can.
    """
    for guide, fault in zip(guides, faults, strict=True):
        _faults[guide.document] = fault
    unchecked(guides)


def portions(guides: Sequence[Guide]) -> list[list[Guide]]:
    """``guides`` in their order, in portions each of which takes a second at most, or holds but one."""
    found: list[list[Guide]] = []
    room = 0
    for guide in guides:
        room -= len(guide.document)
        if room < 0:
            found.append([])
            room = _MOST_TEXT - len(guide.document)
        found[-1].append(guide)
    return found
