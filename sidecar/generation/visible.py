"""A parser of generated text for answers in which nothing but visible text is of use."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.generation.segments import TEXT, Kind, Parser, Segment


class VisibleOnly:
    """Reads as ``parser`` does and gives the visible text alone; the reasoning is read, and counted, all the same."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self.in_reasoning = parser.in_reasoning

    @property
    def repaired_calls(self) -> int:
        """Calls are not visible."""
        return 0

    def plain(self, text: str) -> Kind | None:
        """Never: what is plain may be reasoning."""
        return None

    def feed(self, text: str) -> Sequence[Segment]:
        """See :class:`Parser`."""
        return self._visible(self._parser.feed(text))

    def end(self, *, cut: bool = False) -> Sequence[Segment]:
        """See :class:`Parser`."""
        return self._visible(self._parser.end(cut=cut))

    def _visible(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        self.in_reasoning = self._parser.in_reasoning
        return [segment for segment in segments if segment[0] == TEXT]
