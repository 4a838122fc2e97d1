"""The bytes of images that a worker holds in memory at a time, and whose they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from sidecar.responses.errors import ApiError


class HeldBytes:
    """At most ``limit`` bytes over all requests of a worker.

    An owner may hold no more than it leaves to others, so the next that comes finds room. One that holds no more than
    a single request may is never refused for that.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._owners = Counter[Hashable]()
        self.count = 0
        """How many are held now."""

    @contextmanager
    def share(self, owner: Hashable, limit: int) -> Iterator[Share]:
        """The part of one request of ``owner``, at most ``limit`` bytes; given back with the context."""
        share = Share(self, owner, limit)
        try:
            yield share
        finally:
            self._hold(owner, -share.count)

    def take(self, owner: Hashable, count: int, of_one_request: int) -> None:
        """Hold ``count`` bytes more, where a single request may have ``of_one_request``.

        Raises:
            ApiError: ``capacity_unavailable``, there are not as many for this owner.
        """
        left = self._limit - self.count - count
        if count > 0 and (left < 0 or self._owners[owner] + count > max(left, of_one_request)):
            raise no_capacity()
        self._hold(owner, count)

    def _hold(self, owner: Hashable, count: int) -> None:
        self.count += count
        self._owners[owner] += count
        if not self._owners[owner]:
            del self._owners[owner]


class Share:
    """The bytes that are held for one request; see :meth:`HeldBytes.share`."""

    def __init__(self, held: HeldBytes, owner: Hashable, limit: int) -> None:
        self._held = held
        self._owner = owner
        self._limit = limit
        self.count = 0
        """How many are held for this request."""

    @property
    def left(self) -> int:
        """How many bytes more the request may have."""
        return self._limit - self.count

    def take(self, count: int) -> None:
        """Hold ``count`` bytes more; those of a conversion that became smaller are less than none.

        Raises:
            ApiError: ``payload_too_large``, it is more than the request may have; ``capacity_unavailable``, it is more
                than the worker may have, or its owner's share of that.
        """
        if count > self.left:
            raise ApiError("payload_too_large", f"The images of a request have more than {self._limit} bytes together.")
        self._held.take(self._owner, count, self._limit)
        self.count += count


def no_capacity() -> ApiError:
    """The error for an image of a request that comes when a worker has enough to do."""
    return ApiError("capacity_unavailable", "The server is reading as many images as it can.")
