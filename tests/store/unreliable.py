"""A store that fails when it is told to: before it has done anything, after it has committed, or by a fault of ours."""

from __future__ import annotations

import asyncio
from typing import Literal, TypeVar

from sidecar.store import Operation, Store, StoreUnavailable

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


class Unreliable(Store):
    """``failing`` is how it fails. ``attempts`` counts what was asked of it, ``held`` keeps what was done from its
    caller."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.failing: Literal["before", "after", "fault"] | None = None
        self.attempts = 0
        self.held: asyncio.Event | None = None
        self.committed = asyncio.Event()

    async def run(self, operation: Operation[I, R], item: I, patience: float = 0.0) -> R:
        self.attempts += 1
        if self.failing == "before":
            raise StoreUnavailable("told to fail")
        if self.failing == "fault":
            raise ArithmeticError("told to fail")
        result = await super().run(operation, item, patience)
        self.committed.set()
        if self.held is not None:
            await self.held.wait()
        if self.failing == "after":
            raise StoreUnavailable("told to fail")
        return result
