"""Counts calls of Python functions, where a test says what a token or a piece may cost."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def counted_calls(*modules: str) -> Iterator[Counter[str]]:
    """The calls, and the resumed generators, of functions in modules whose names begin so, by qualified name."""
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_globals["__name__"].startswith(modules):
            calls[frame.f_code.co_qualname] += 1

    profiler = sys.getprofile()
    # A collection runs what has nothing to do with the test.
    gc.disable()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(profiler)
        gc.enable()
