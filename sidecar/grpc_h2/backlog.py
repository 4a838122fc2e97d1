"""What a call has sent and the peer's windows do not let out yet."""

from __future__ import annotations

from collections import deque

from sidecar.grpc_h2.unframer import PREFIX


class Backlog:
    """Messages in their order, as one run of bytes, and the marks at which they end."""

    __slots__ = ("_added", "_data", "_marks", "_taken")

    def __init__(self) -> None:
        self._data = bytearray()
        self._marks = deque[tuple[int, int]]()
        self._added = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._data)

    def add(self, message: bytes, mark: int) -> None:
        """Append a message; the mark 0 is none."""
        self._data += PREFIX.pack(0, len(message))
        self._data += message
        self._added += PREFIX.size + len(message)
        if mark:
            self._marks.append((self._added, mark))

    def take(self, most: int) -> tuple[bytes, list[int]]:
        """At most ``most`` bytes from the front, and the marks of the messages that end in them."""
        with memoryview(self._data) as view:
            data = bytes(view[:most])
        del self._data[: len(data)]
        self._taken += len(data)
        marks = []
        while self._marks and self._marks[0][0] <= self._taken:
            marks.append(self._marks.popleft()[1])
        return data, marks
