"""Results for texts, remembered by the text's content.

Clients send the same schemas with every turn of a conversation; to look at them once is enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from hashlib import blake2b
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

_OVERHEAD = 1000


class Memory(Generic[T]):
    """The latest results, kept by a hash of the text and not with the text itself.

    The texts they were made of have at most ``budget`` characters together, where each counts for a thousand more than
    it has. Results are shared between callers and threads: they must not be changed.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._results: OrderedDict[bytes, tuple[T, int]] = OrderedDict()
        self._lock = Lock()
        self._held = 0

    def __getitem__(self, text: str) -> T:
        """The result for ``text``; raises :class:`KeyError` where there is none."""
        key = _key(text)
        with self._lock:
            result, _ = self._results[key]
            self._results.move_to_end(key)
        return result

    def __setitem__(self, text: str, result: T) -> None:
        key, cost = _key(text), len(text) + _OVERHEAD
        with self._lock:
            self._held += cost - self._results.pop(key, (None, 0))[1]
            self._results[key] = result, cost
            while self._held > self._budget:
                self._held -= self._results.popitem(last=False)[1][1]


def remembered(budget: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A decorator: the results of a pure function of a text are kept in a :class:`Memory` of ``budget``."""

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        memory = Memory[T](budget)

        @wraps(function)
        def look_up(text: str) -> T:
            try:
                return memory[text]
            except KeyError:
                result = memory[text] = function(text)
                return result

        return look_up

    return decorate


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
