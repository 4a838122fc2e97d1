"""Who is next, and who has to go: a bounded queue in which owners take turns.

An owner alone may have the whole queue. In a full one the owner with the most entries gives up its newest for an owner
that has fewer, so that whatever an owner puts in, the others find room.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class QueueFullError(Exception):
    """No more may wait; what was refused was not begun."""


class FairQueue(Generic[Entry]):
    """At most ``bound`` entries, first in first out for each owner, one owner after another."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._length = 0
        # In the order of their turns; each has at least one entry.
        self._owners: OrderedDict[Hashable, deque[Entry]] = OrderedDict()
        # Whose turn was the last; at first nobody's.
        self._latest: Hashable = object()

    def __len__(self) -> int:
        return self._length

    def add(self, owner: Hashable, entry: Entry) -> Entry | None:
        """Append ``entry``; the entry that has lost its place to it, if one has.

        Raises:
            QueueFullError: there is no room, and no other owner would still have as many entries after giving one up.
        """
        displaced = self._make_room(owner) if self._length >= self._bound else None
        if owner not in self._owners:
            self._owners[owner] = deque()
            # Whoever has just had a turn may have begun to wait first, but has waited for nothing yet.
            if self._latest in self._owners:
                self._owners.move_to_end(self._latest)
        self._owners[owner].append(entry)
        self._length += 1
        return displaced

    def pop(self) -> Entry:
        """Take the next entry; raises :class:`IndexError` when there is none."""
        if not self._owners:
            raise IndexError("no entry waits")
        owner, entries = self._owners.popitem(last=False)
        entry = entries.popleft()
        if entries:
            self._owners[owner] = entries
        self._length -= 1
        self._latest = owner
        return entry

    def note_turn(self, owner: Hashable) -> None:
        """``owner`` has had a turn without an entry."""
        self._latest = owner

    def discard(self, owner: Hashable, entry: Entry) -> None:
        """Take out ``entry``, if it waits."""
        entries = self._owners.get(owner, deque())
        if entry in entries:
            entries.remove(entry)
            self._length -= 1
            if not entries:
                del self._owners[owner]

    def _make_room(self, owner: Hashable) -> Entry:
        most = max(self._owners.values(), key=len, default=deque[Entry]())
        if len(most) - 1 <= len(self._owners.get(owner, ())):
            raise QueueFullError
        self._length -= 1
        return most.pop()
