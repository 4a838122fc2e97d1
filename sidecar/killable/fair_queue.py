"""Who is next: the owners take turns, whatever number of entries each of them has."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from sidecar.killable.errors import QueueFullError

Entry = TypeVar("Entry")


class FairQueue(Generic[Entry]):
    """At most ``bound`` entries, first in first out for each owner, one owner after another."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._length = 0
        self._owners: OrderedDict[Hashable, deque[Entry]] = OrderedDict()

    def __len__(self) -> int:
        return self._length

    def add(self, owner: Hashable, entry: Entry) -> None:
        """Append ``entry``; raises :class:`QueueFullError`."""
        if self._length >= self._bound:
            raise QueueFullError
        self._owners.setdefault(owner, deque()).append(entry)
        self._length += 1

    def pop(self) -> Entry:
        """Take the next entry; raises :class:`IndexError` when there is none."""
        if not self._owners:
            raise IndexError("no entry waits")
        owner, entries = self._owners.popitem(last=False)
        entry = entries.popleft()
        if entries:
            self._owners[owner] = entries
        self._length -= 1
        return entry

    def discard(self, owner: Hashable, entry: Entry) -> None:
        """Take out ``entry``, if it waits."""
        entries = self._owners.get(owner, deque())
        if entry in entries:
            entries.remove(entry)
            self._length -= 1
            if not entries:
                del self._owners[owner]
