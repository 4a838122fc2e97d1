"""How much of an answer its client has been given: counted where it is handed over, not where it is generated."""

from __future__ import annotations

from sidecar.responses.marks import NOTHING, Cell, Counts


class Delivered:
    """How far an answer has come: ``written`` is the mark of what stands in messages, ``cell`` of what was handed over.

    What waits in a transport is written and not handed over. Whoever keeps account puts a cell of its own in place
    before the upstream is called.
    """

    __slots__ = ("cell", "written")

    def __init__(self) -> None:
        self.cell: Cell = [NOTHING]
        self.written = NOTHING

    @property
    def counts(self) -> Counts:
        """What has been handed over."""
        return Counts.of(self.cell[0])

    def detach(self) -> None:
        """Nothing is handed over any more: keep the mark here, so that its cell may serve another answer."""
        self.cell = [self.cell[0]]
