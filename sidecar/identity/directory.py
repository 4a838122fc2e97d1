"""What a worker knows of credentials: asked of the store once in some seconds, however many requests use them.

What was read counts from when the reading began, so a credential that is revoked is refused at the latest
``cache_seconds`` after its revocation was committed, or when the reading that was under way has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from sidecar.identity.known import Known
from sidecar.responses.errors import ApiError
from sidecar.store import StoreUnavailable

Find = Callable[[Sequence[bytes]], Awaitable[Mapping[bytes, Known]]]
"""Those of some digests that the store knows; raises :class:`StoreUnavailable`."""

MOST_KNOWN = 50_000
MOST_UNKNOWN = 10_000
MOST_WAITING = 4096
MOST_AT_ONCE = 256
STALE_SECONDS = 600.0
"""For how long after it was read a credential counts while the store is down, where that is wanted."""

_WAIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _Read:
    """What was found of a credential, and when the reading began, on the monotonic clock."""

    known: Known | None
    at: float


class Directory:
    """Looks up credentials by their digests.

    ``find`` asks the store for many at once. What it finds is kept for ``cache_seconds``, and that a credential is
    unknown for ``negative_seconds``. With ``stale``, what was known counts for longer while the store is down.
    """

    def __init__(
        self,
        find: Find,
        cache_seconds: float,
        negative_seconds: float,
        *,
        stale: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._seconds = cache_seconds
        self._negative_seconds = negative_seconds
        self._stale = stale
        self._clock = clock
        self._known: dict[bytes, _Read] = {}
        self._unknown: dict[bytes, _Read] = {}
        self._failed_at = float("-inf")
        # Requests for one credential share one look-up, and look-ups that wait share one query.
        self._waiting: dict[bytes, asyncio.Future[_Read | None]] = {}
        self._queue = deque[bytes]()
        self._reading: asyncio.Task[None] | None = None

    async def get(self, digest: bytes) -> Known | None:
        """What the store knows of a credential; ``None`` where it knows none.

        Raises:
            ApiError: ``node_unavailable``: the store does not answer.
        """
        if (fresh := self._fresh(digest)) is not None:
            return fresh.known
        answers = self._clock() - self._failed_at >= self._negative_seconds
        if answers and (read := await self._look_up(digest)) is not None:
            return read.known
        old = self._known.get(digest)
        if self._stale and old is not None and self._clock() - old.at < STALE_SECONDS:
            return old.known
        raise ApiError("node_unavailable", "The node cannot look up credentials now; try again shortly.")

    def _fresh(self, digest: bytes) -> _Read | None:
        now = self._clock()
        for reads, seconds in ((self._known, self._seconds), (self._unknown, self._negative_seconds)):
            read = reads.get(digest)
            if read is not None and now - read.at < seconds:
                return read
        return None

    async def _look_up(self, digest: bytes) -> _Read | None:
        """Look ``digest`` up in the store; ``None`` where that fails, takes too long, or too many wait for it."""
        answered = self._waiting.get(digest)
        if answered is None:
            # Whoever sends many unknown keys takes no place from those that are known.
            if len(self._queue) >= MOST_WAITING and digest not in self._known:
                return None
            answered = self._waiting[digest] = asyncio.get_running_loop().create_future()
            self._queue.append(digest)
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())
        # Not the future itself: a request that is given up must not take it from the others.
        await asyncio.wait((answered,), timeout=_WAIT_SECONDS)
        return answered.result() if answered.done() else None

    async def _read_all(self) -> None:
        try:
            while self._queue:
                await self._read([self._queue.popleft() for _ in range(min(len(self._queue), MOST_AT_ONCE))])
        finally:
            self._reading = None

    async def _read(self, digests: list[bytes]) -> None:
        began, reads = self._clock(), dict[bytes, _Read]()
        try:
            found = await self._find(digests)
            reads = {digest: _Read(found.get(digest), began) for digest in digests}
        except StoreUnavailable:
            self._failed_at = self._clock()
            # The others that wait would only wait longer for the same.
            digests += self._queue
            self._queue.clear()
        finally:
            for digest in digests:
                if (read := reads.get(digest)) is not None:
                    self._keep(digest, read)
                self._waiting.pop(digest).set_result(read)

    def _keep(self, digest: bytes, read: _Read) -> None:
        self._known.pop(digest, None)
        self._unknown.pop(digest, None)
        reads, most = (self._known, MOST_KNOWN) if read.known is not None else (self._unknown, MOST_UNKNOWN)
        reads[digest] = read
        if len(reads) > most:
            # The one that was read longest ago.
            del reads[next(iter(reads))]
