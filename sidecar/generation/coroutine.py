"""A parser whose reading is written from top to bottom, as one coroutine.

Most tokens are plain: while the coroutine waits for one of some markers and nothing is held back, a piece without any
of them goes to the sink past the coroutine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from sidecar.generation.segments import Segment
from sidecar.generation.sink import Sink
from sidecar.generation.source import Source, Steps


class CoroutineParser(ABC):
    """A :class:`~sidecar.generation.segments.Parser` that reads from a source into a sink.

    A parser that reads a part for another one shares its source and sink, and its :meth:`read` is delegated to.
    ``begins`` are the markers at which a call may begin; ``control`` are the model's special tokens, never text.
    """

    begins: ClassVar[tuple[str, ...]] = ()
    control: ClassVar[tuple[str, ...]] = ()

    def __init__(self, source: Source | None = None, sink: Sink | None = None) -> None:
        self.source = source or Source()
        self.sink = sink or Sink()
        self._steps = self.read()

    @abstractmethod
    def read(self) -> Steps[None]:
        """Read the whole generation, to its end."""

    def feed(self, text: str) -> list[Segment]:
        """The segments that ``text`` adds."""
        source = self.source
        if source.awaited is not None and source.awaited(text) is None:
            source.emit(text)
        else:
            source.feed(text)
            next(self._steps, None)
        return self.sink.take()

    def end(self, *, cut: bool = False) -> list[Segment]:
        """What was held back, and the end of what is open."""
        self.source.end(cut)
        next(self._steps, None)
        return self.sink.take()


class PlainText(CoroutineParser):
    """The parser of a model without markup: all text is visible, as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.sink.blank = False

    def read(self) -> Steps[None]:
        """Text to the end."""
        yield from self.source.rest(self.sink.text)
