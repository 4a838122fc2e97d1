"""One worker of the stress test, without Envoy and Triton: it reserves, hands tokens over, and settles, all at random.

A token is handed over by writing its reservation's id to a journal, as a worker writes to Envoy's socket: what is
written there the client has, although the worker is killed in the next moment. Then its mark is stored.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from sidecar.admission import recovery, spool
from sidecar.admission.bookkeeper import Bookkeeper, Reserved
from sidecar.admission.checkpoint import Checkpoint
from sidecar.admission.entries import ReservationRequest, Settlement
from sidecar.admission.ledger import Ledger
from sidecar.admission.lessee import Lessee
from sidecar.admission.limits import Limits
from sidecar.admission.prices import Price, PriceList
from sidecar.admission.recovery import Recovery
from sidecar.admission.spool import Spool, spool_url
from sidecar.admission.terms import TermsReader
from sidecar.responses.ids import ulid
from sidecar.responses.marks import mark_of
from sidecar.store import Store, StoreUnavailable, transaction
from sidecar.store.migrate import migrate

MODEL = "b3os/stress"
PRICE = Price(date(2020, 1, 1), Decimal("0.15"), Decimal("0.075"), Decimal("0.60"))
INPUT_TOKENS, MOST_TOKENS = 10, 30
STREAMS = 16
CONCURRENT = 12
CONCURRENT_WITH_LEASES = 160
QUOTA = 60_000
ORGANIZATIONS = ("org_free", "org_quota", "org_prepaid")


def ledger(lessee: Lessee | None = None) -> Ledger:
    concurrent = CONCURRENT if lessee is None else CONCURRENT_WITH_LEASES
    defaults = Limits(
        tokens_per_minute=10**6, concurrent_requests=concurrent, requests_per_minute=10**6, period="month"
    )
    quota = Limits(period="month", period_tokens=QUOTA).over(defaults)

    def clock(connection: Connection) -> int:
        return transaction.now_us(connection)

    return Ledger(PriceList({MODEL: [PRICE]}), TermsReader(quota), clock, lessee)


def let_clock_jump(file: Path) -> None:
    """From now on the store's clock is off by as many seconds as stand in ``file``."""
    now_us = transaction.now_us

    def jumping(connection: Connection) -> int:
        offset = int(file.read_text() or 0) if file.exists() else 0
        return now_us(connection) + offset * 10**6

    for module in list(sys.modules.values()):
        if getattr(module, "now_us", None) is now_us:
            module.now_us = jumping  # type: ignore[attr-defined]


class Worker:
    def __init__(self, options: dict[str, Any], stopping: asyncio.Event) -> None:
        name, url, state, spooling = options["name"], options["url"], Path(options["state"]), options["spool"]
        self.random = random.Random(options["seed"])
        self.name = name
        self.store = Store(url, timeout=1.0)
        lessee = Lessee(name, options["lease_seconds"]) if options["lease_seconds"] else None
        books = ledger(lessee)
        if spooling:
            migrate(spool_url(state))
        spool = Spool(state, ledger(), self.store, books) if spooling else None
        self.checkpoint = Checkpoint(state, name)
        self.bookkeeper = Bookkeeper(self.store, books, self.checkpoint, spool)
        self.recovery = Recovery(self.store, books, self.checkpoint, "n1", spool, lessee=lessee)
        self.spool = spool
        self.journal = os.open(state / f"{name}.journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self.stopping = stopping

    async def run(self, streams: int) -> None:
        background = asyncio.create_task(self.recovery.run_forever())
        clients = [asyncio.create_task(self.client()) for _ in range(streams)]
        await self.stopping.wait()
        self.bookkeeper.stop()
        await asyncio.gather(*clients)
        background.cancel()
        await asyncio.wait([background])
        await self.bookkeeper.close()
        await self.recovery.leave()

    async def client(self) -> None:
        """One stream after another."""
        while not self.stopping.is_set():
            id = ulid(time.time_ns() // 10**6, self.random.randbytes(10))
            request = ReservationRequest(
                id=id,
                request_id=f"request-{id}",
                organization_id=self.random.choice(ORGANIZATIONS),
                model=MODEL,
                node="n1",
                worker=self.name,
                input_tokens=INPUT_TOKENS,
                output_tokens=MOST_TOKENS,
                stream=True,
                project="stress",
                environment="test",
            )
            reserved = await self.reserve(request)
            if reserved is not None:
                await self.stream(request, reserved)
            await asyncio.sleep(self.random.uniform(0, 0.01))

    async def reserve(self, request: ReservationRequest) -> Reserved | None:
        reserving = asyncio.create_task(self.bookkeeper.reserve(request))
        if self.random.random() < 0.1:
            # The client leaves, maybe just when the answer comes.
            await asyncio.wait([reserving], timeout=self.random.uniform(0, 0.01))
            reserving.cancel()
        try:
            outcome = await reserving
        except (StoreUnavailable, asyncio.CancelledError):
            return None
        return outcome if isinstance(outcome, Reserved) else None

    async def stream(self, request: ReservationRequest, reserved: Reserved) -> None:
        """The model generates up to ``MOST_TOKENS``, of which the client takes some before it leaves."""
        generated = self.random.choice((0, 1, 5, 20, MOST_TOKENS))
        delivered = self.random.choice((0, generated // 2, generated, generated))
        line = f"{request.id}\n".encode()
        for token in range(1, delivered + 1):
            os.write(self.journal, line)
            reserved.slot.mark[0] = mark_of(token, token // 3)
            if token % 4 == 0:
                await asyncio.sleep(self.random.uniform(0, 0.004))
        settlement = Settlement(
            request.id,
            "completed" if delivered == generated else "client_gone",
            begun=delivered > 0,
            input_tokens=INPUT_TOKENS,
            output_tokens=delivered,
            reasoning_tokens=delivered // 3,
            generated_tokens=generated,
        )
        await self.bookkeeper.settle(reserved.slot, settlement)


async def main(options: dict[str, Any]) -> None:
    recovery.LOOK_SECONDS, recovery.BEAT_SECONDS = 0.2, 0.5
    spool._COPY_SECONDS = 0.3
    state = Path(options["state"])
    let_clock_jump(state / "clock")
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await Worker(options, stopping).run(options["streams"])


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
