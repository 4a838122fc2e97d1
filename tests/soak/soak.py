"""Sends mixed requests, some at a time, and breaks things meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stack.local import LocalStack
from tests.soak.faults import FAULTS, Windows
from tests.soak.kinds import Clients, Kind

AT_ONCE = 32

_RETRYABLE = frozenset({503, "error", "ConnectError", "ReadError", "RemoteProtocolError", "WriteError"})
"""How a request may end that meets a part that dies: the client is told, and may try again."""


@dataclass
class Outcomes:
    """How requests ended, by their kinds: ``other`` than they must, and ``broken`` off by a fault."""

    well: Counter[str] = field(default_factory=Counter)
    broken: Counter[tuple[str, int | str | None]] = field(default_factory=Counter)
    other: Counter[tuple[str, int | str | None]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """All of them."""
        return self.well.total() + self.broken.total() + self.other.total()


async def soak(stack: LocalStack, kinds: Mapping[str, Kind], names: Sequence[str], *, faults: int = 0) -> Outcomes:
    """Send requests of these ``names``, and let ``faults`` happen among the first nine tenths of them."""
    outcomes, windows, left = Outcomes(), Windows(), iter(names)

    async def one_after_another(clients: Clients) -> None:
        for name in left:
            begun_at = time.monotonic()
            outcome = await clients.ask(kinds[name])
            if outcome == kinds[name].ends:
                outcomes.well[name] += 1
            elif outcome in _RETRYABLE and windows.met(begun_at, time.monotonic()):
                outcomes.broken[name, outcome] += 1
            else:
                outcomes.other[name, outcome] += 1

    async def break_things() -> None:
        kinds_of_faults = list(FAULTS.items())
        for number in range(faults):
            due = (number + 0.5) / faults * 0.9 * len(names)
            while outcomes.total < due:
                await asyncio.sleep(0.05)
            name, fault = kinds_of_faults[number % len(kinds_of_faults)]
            await windows.during(stack, fault)
            outcomes.faults[name] += 1

    started_at = time.monotonic()
    async with Clients(stack) as clients:
        await asyncio.gather(break_things(), *(one_after_another(clients) for _ in range(AT_ONCE)))
    outcomes.seconds = time.monotonic() - started_at
    return outcomes
