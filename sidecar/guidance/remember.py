"""Results of pure functions of a text, remembered by the text's content.

Clients send the same schemas with every turn of a conversation; to look at them once is enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from hashlib import blake2b
from threading import Lock
from typing import TypeVar

T = TypeVar("T")

_OVERHEAD = 1000


def remembered(budget: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A decorator: the function's latest results are kept, by a hash of the text and not with the text itself.

    The texts they were made of have at most ``budget`` characters together, where each counts for a thousand more than
    it has. Results are shared between callers and threads: they must not be changed.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        results: OrderedDict[bytes, tuple[T, int]] = OrderedDict()
        lock = Lock()
        held = 0

        @wraps(function)
        def look_up(text: str) -> T:
            nonlocal held
            key = blake2b(text.encode(), digest_size=16).digest()
            with lock:
                if key in results:
                    results.move_to_end(key)
                    return results[key][0]
            result, cost = function(text), len(text) + _OVERHEAD
            with lock:
                held += cost - results.pop(key, (None, 0))[1]
                results[key] = result, cost
                while held > budget:
                    held -= results.popitem(last=False)[1][1]
            return result

        return look_up

    return decorate
