"""A parser whose reading is written from top to bottom, as one coroutine.

Most tokens are plain: while the coroutine waits for one of some markers and nothing is held back, a piece without any
of them goes to the sink past the coroutine; and past the sink too, where that would give it back as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from sidecar.generation.markers import Markers
from sidecar.generation.segments import REASONING, Kind, Segment
from sidecar.generation.sink import Sink
from sidecar.generation.source import Emit, Source, Steps


class CoroutineParser(ABC):
    """A :class:`~sidecar.generation.segments.Parser` that reads from a source into a sink.

    A parser that reads a part for another one shares its source and sink, and its :meth:`read` is delegated to.
    ``begins`` are the markers at which a call may begin; ``ends`` those that end its markup, the outermost last;
    ``control`` are special tokens, which a model cannot mean as text.
    """

    begins: ClassVar[tuple[str, ...]] = ()
    ends: ClassVar[tuple[str, ...]] = ()
    control: ClassVar[tuple[str, ...]] = ()

    def __init__(self, source: Source | None = None, sink: Sink | None = None) -> None:
        self.source = source or Source()
        self.sink = sink or Sink()
        self.tokens = self.control
        """The special tokens, with those of what is set aside."""
        self.in_reasoning = False
        self._plain: Kind | None = None
        self._aside: tuple[str, Callable[[], Steps[None]]] | None = None
        self._look_for_markers()
        self._steps = self.read()

    @property
    def repaired_calls(self) -> int:
        """See :class:`~sidecar.generation.segments.Parser`."""
        return self.sink.repaired_calls

    @abstractmethod
    def read(self) -> Steps[None]:
        """Read the whole generation, to its end."""

    def plain(self, text: str) -> Kind | None:
        """The kind of ``text`` where it is one segment as it is, and has been read."""
        kind, awaited = self._plain, self.source.awaited
        if kind is None or awaited is None or awaited(text):
            return None
        if kind is REASONING and text[-1].isspace():
            # It is held back.
            return None
        self.sink.last = text
        return kind

    def feed(self, text: str) -> list[Segment]:
        """The segments that ``text`` adds."""
        if text and (kind := self.plain(text)) is not None:
            return [(kind, text)]
        source = self.source
        if source.awaited is not None and source.awaited(text) is None:
            source.emit(text)
        else:
            source.feed(text)
            next(self._steps, None)
            self.in_reasoning = self.sink.in_reasoning
        segments = self.sink.take()
        self._plain = None if source.awaited is None else self.sink.passes(source.emit)
        return segments

    def end(self, *, cut: bool = False) -> list[Segment]:
        """What was held back, and the end of what is open."""
        self.source.end(cut)
        next(self._steps, None)
        return self.sink.take()

    def set_aside(self, begin: str, end: str, read: Callable[[], Steps[None]]) -> None:
        """The special tokens ``begin`` and ``end`` stand around what is none of this parser's; ``read`` reads it."""
        self.tokens = (*self.tokens, begin, end)
        self._aside = (begin, read)
        self._look_for_markers()

    def skip(self, marker: str, emit: Emit) -> Steps[None]:
        """Leave out the special token that comes next from what goes to ``emit``, with what is set aside behind it."""
        self.source.take(len(marker))
        if self._aside and marker == self._aside[0]:
            yield from self._aside[1]()
        else:
            self.drop(emit)

    def drop(self, emit: Emit) -> None:
        """A special token is left out of what goes to ``emit``. What stood around it must not become another one."""
        if self._control_marks.begun(self.sink.last):
            emit(" ")

    def _look_for_markers(self) -> None:
        self._marks = markers_of((*self.begins, *self.ends, *self.tokens))
        self._control_marks = markers_of(self.tokens)


@lru_cache(maxsize=256)
def markers_of(markers: tuple[str, ...]) -> Markers:
    """What finds these markers."""
    return Markers(*markers)


class PlainText(CoroutineParser):
    """The parser of a model without calls: all text is visible, as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.sink.blank = False

    def read(self) -> Steps[None]:
        """Text to the end."""
        while marker := (yield from self.source.until(self._marks, self.sink.text)):
            yield from self.skip(marker, self.sink.text)
