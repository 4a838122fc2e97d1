"""A pool without processes, for tests of what stands around it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from sidecar.killable import Pool

Result = TypeVar("Result")


class InPlace(Pool):
    """Calls functions where it is, or fails as it is told; ``calls`` are the functions."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__(0, memory=0)
        self.calls: list[Callable[..., object]] = []
        self.failure = failure

    async def run(
        self, function: Callable[..., Result], *arguments: Any, seconds: float, owner: Hashable = None
    ) -> Result:
        self.calls.append(function)
        if self.failure is not None:
            raise self.failure
        return function(*arguments)
