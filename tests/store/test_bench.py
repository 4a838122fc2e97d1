"""The bench of the ledger measures what it says: requests that were reserved and settled."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import func, select

from bench import ledger as bench
from sidecar.store import connect
from sidecar.store.tables import reservations


def test_a_row_counts_what_is_in_the_store(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "SECONDS", 0.2)
    row = bench.run_case(bench.Case("PostgreSQL", nodes=2, organizations=3, callers=2), store_url, os.getpid())
    cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
    assert len(cells) == bench.HEAD.splitlines()[0].count("|") - 1
    named = dict(zip((name.strip() for name in bench.HEAD.splitlines()[0].strip("|").split("|")), cells, strict=True))
    assert named["nodes"] == "2"
    assert float(named["reservations/s"]) > 0
    assert named["failed"] == "0"
    with connect(store_url) as connection:
        left = select(func.count()).where(reservations.c.settled_at.is_(None))
        assert connection.execute(left).scalar_one() == 0
        assert {name for (name,) in connection.execute(select(reservations.c.organization_id).distinct())} <= {
            "org-0",
            "org-1",
            "org-2",
        }
