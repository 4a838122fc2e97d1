"""The bytes of images that a worker holds in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.responses.errors import ApiError


class HeldBytes:
    """At most ``limit`` bytes over all requests of a worker."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0
        """How many are held now."""

    @contextmanager
    def share(self, limit: int) -> Iterator[Share]:
        """One request's part of them, at most ``limit`` bytes; given back with the context."""
        share = Share(self, limit)
        try:
            yield share
        finally:
            self.count -= share.count

    def take(self, count: int) -> None:
        """Hold ``count`` bytes more; raises :class:`ApiError` ``capacity_unavailable``."""
        if self.count + count > self._limit:
            raise no_capacity()
        self.count += count


class Share:
    """The bytes that are held for one request; see :meth:`HeldBytes.share`."""

    def __init__(self, held: HeldBytes, limit: int) -> None:
        self._held = held
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
                than the worker may have.
        """
        if count > self.left:
            raise ApiError("payload_too_large", f"The images of a request have more than {self._limit} bytes together.")
        self._held.take(count)
        self.count += count


def no_capacity() -> ApiError:
    """The error for an image of a request that comes when a worker has enough to do."""
    return ApiError("capacity_unavailable", "The server is reading as many images as it can.")
