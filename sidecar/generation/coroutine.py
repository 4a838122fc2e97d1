"""A parser whose reading is written from top to bottom, as one coroutine."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sidecar.generation.segments import Segment
from sidecar.generation.sink import Sink
from sidecar.generation.source import Source, Steps


class CoroutineParser(ABC):
    """A :class:`~sidecar.generation.segments.Parser` that reads from a source into a sink."""

    def __init__(self) -> None:
        self.source = Source()
        self.sink = Sink()
        self._steps = self.read()

    @abstractmethod
    def read(self) -> Steps[None]:
        """Read the whole generation, to its end."""

    def feed(self, text: str) -> list[Segment]:
        """The segments that ``text`` adds."""
        self.source.feed(text)
        next(self._steps, None)
        return self.sink.take()

    def end(self) -> list[Segment]:
        """What was held back, and the end of what is open."""
        self.source.end()
        next(self._steps, None)
        return self.sink.take()
