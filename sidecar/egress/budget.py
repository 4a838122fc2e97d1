"""What an organisation may have fetched for it."""

from __future__ import annotations

from typing import Protocol


class ByteBudget(Protocol):
    """The bytes of remote images that one organisation may still have."""

    async def take(self, count: int) -> None:
        """Account for ``count`` bytes that have come.

        Raises:
            ApiError: ``rate_limited``, there are not as many left.
        """


class UnlimitedBytes:
    """A budget without an end."""

    async def take(self, count: int) -> None:
        """Always enough."""
