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


def remembered(size: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A decorator: the function's last ``size`` results are kept, by a hash of the text and not with the text itself.

    The results are shared between callers and threads: they must not be changed.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        results: OrderedDict[bytes, T] = OrderedDict()
        lock = Lock()

        @wraps(function)
        def look_up(text: str) -> T:
            key = blake2b(text.encode(), digest_size=16).digest()
            with lock:
                if key in results:
                    results.move_to_end(key)
                    return results[key]
            result = function(text)
            with lock:
                results[key] = result
                if len(results) > size:
                    results.popitem(last=False)
            return result

        return look_up

    return decorate
