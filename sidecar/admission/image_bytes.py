"""The bytes of remote images that one request may have fetched, lent to it by its reservation."""

from __future__ import annotations

from sidecar.admission.refusals import seconds, whole_seconds
from sidecar.responses.errors import ApiError

_MICROSECONDS_A_MINUTE = 60_000_000


class ImageBytes:
    """A budget of ``granted`` bytes, ``None`` where there is no limit. ``used`` is how many have come."""

    def __init__(self, granted: int | None = None, *, limit: int | None = None, model: str = "") -> None:
        """``limit`` is how many bytes a minute the organization may have for ``model``."""
        self.used = 0
        self._granted = granted
        self._limit = limit
        self._model = model

    @property
    def is_limited(self) -> bool:
        """Whether what was not used is to be given back."""
        return self._granted is not None

    async def take(self, count: int) -> None:
        """Account for ``count`` bytes that have come.

        Raises:
            ApiError: ``rate_limited``, there are not as many left.
        """
        self.used += count
        if self._granted is None or self._limit is None or self.used <= self._granted:
            return
        allowed = f"{self._limit} bytes of remote images per minute allowed on {self._model}"
        if self.used > self._limit:
            raise ApiError("rate_limited", f"{allowed}, fewer than this request needs", retry=False)
        wait = (self.used - self._granted) * _MICROSECONDS_A_MINUTE // self._limit
        raise ApiError("rate_limited", f"{allowed}; retry in {seconds(wait)}", retry_after=whole_seconds(wait))
