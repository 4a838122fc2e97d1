"""One node of the ledger's bench: callers that reserve and settle, again and again, on a store that nodes share.

Run as a process of its own. It connects, writes a line, waits for a line, works for some seconds, writes its figures as
JSON, and ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from dataclasses import asdict, dataclass
from itertools import count

import uvloop
from sqlalchemy import Engine, event

from sidecar.admission.entries import Admitted, ReservationRequest, Settlement
from sidecar.admission.ledger import Ledger
from sidecar.admission.lessee import Lessee
from sidecar.admission.limits import Limits
from sidecar.admission.prices import PriceList
from sidecar.admission.terms import TermsReader
from sidecar.responses.ids import ulid
from sidecar.store import Store, StoreUnavailable

MODEL = "bench"
# Limits that every request meets and none reaches: their balances are locked and written as all others are.
LIMITS = Limits(requests_per_minute=10**9, tokens_per_minute=10**12, concurrent_requests=10**6)


@dataclass
class Figures:
    """What a node has done in the time that is measured. Latencies are those of reservations, in milliseconds."""

    latencies: list[float]
    reservations: int = 0
    failures: int = 0
    transactions: int = 0
    statements: int = 0


class Node:
    """A store, a ledger on it, and what they have done since :meth:`begin`."""

    def __init__(self, url: str, organizations: int, lease_seconds: int = 0, round_trip_ms: int = 0) -> None:
        self._store = Store(url)
        self._organizations = organizations
        self._numbers = count()
        self._name = f"node-{os.getpid()}"
        lessee = Lessee(self._name, lease_seconds) if lease_seconds else None
        self._ledger = Ledger(PriceList({}), TermsReader(LIMITS), lessee=lessee)
        self._executed = 0
        self._round_trip_seconds = round_trip_ms / 1000
        self.figures = Figures([])
        event.listen(Engine, "before_cursor_execute", self._note)

    def _note(self, *_: object) -> None:
        self._executed += 1
        # The store's thread waits, as it would for a server that is far away.
        time.sleep(self._round_trip_seconds)

    async def connect(self) -> None:
        """Open the store."""
        await self._request()

    async def fill(self) -> None:
        """Let every organization reserve and settle once, so that all balances are there."""
        await asyncio.gather(*(self._request(number) for number in range(self._organizations)))
        await self._store.close()

    async def work(self, callers: int, seconds: float) -> Figures:
        """Let ``callers`` reserve and settle for ``seconds``."""
        self.figures = Figures([])
        transactions, statements = self._store.transactions, self._executed
        end = time.monotonic() + seconds
        await asyncio.gather(*(self._call_until(end) for _ in range(callers)))
        self.figures.transactions = self._store.transactions - transactions
        self.figures.statements = self._executed - statements
        return self.figures

    async def _call_until(self, end: float) -> None:
        while time.monotonic() < end:
            try:
                await self._request()
            except StoreUnavailable:
                self.figures.failures += 1

    async def _request(self, organization: int | None = None) -> None:
        number = next(self._numbers)
        request = ReservationRequest(
            ulid(time.time_ns() // 1_000_000, os.urandom(10)),
            f"{self._name}-{number}",
            f"org-{random.randrange(self._organizations) if organization is None else organization}",
            MODEL,
            self._name,
            self._name,
            input_tokens=500,
            output_tokens=512,
        )
        began = time.monotonic()
        admitted = await self._store.run(self._ledger, request)
        self.figures.latencies.append((time.monotonic() - began) * 1000)
        assert isinstance(admitted, Admitted), admitted
        self.figures.reservations += 1
        await self._store.run(
            self._ledger,
            Settlement(request.id, "completed", begun=True, input_tokens=500, output_tokens=100, generated_tokens=100),
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--organizations", type=int, required=True)
    parser.add_argument("--lease-seconds", type=int, required=True)
    parser.add_argument("--round-trip-ms", type=int, required=True)
    parser.add_argument("--callers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()

    async def run() -> None:
        node = Node(options.url, options.organizations, options.lease_seconds, options.round_trip_ms)
        await node.connect()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(json.dumps(asdict(await node.work(options.callers, options.seconds))), flush=True)
        # Its processor time, and the server's for it, are read while it is there.
        await asyncio.to_thread(sys.stdin.read)

    uvloop.run(run())


if __name__ == "__main__":
    main()
