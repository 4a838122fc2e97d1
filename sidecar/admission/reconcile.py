"""Proves the ledger's sums: what stands in one table must follow from what stands in the others.

All checks see one state of the store, so that whatever is under way meanwhile is no fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, text

from sidecar.admission.balances import Key
from sidecar.admission.bill import CARRIED_FORWARD, CORRECTION
from sidecar.admission.money import decimal
from sidecar.admission.periods import SECOND
from sidecar.admission.reservation import Reservation
from sidecar.store import now_us

MOST_FINDINGS = 100
"""How many findings of one kind are told; where there are more, the last one says so."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not agree: the ``check`` that found it, what it is about (an id), and what is wrong."""

    check: str
    subject: str
    words: str


Check = Callable[[Connection], Iterator[Finding]]


def reconcile(connection: Connection, open_seconds: float) -> Iterator[Finding]:
    """All that does not agree. A reservation may be open for ``open_seconds``: as long as an answer may take."""

    def open_too_long(connection: Connection) -> Iterator[Finding]:
        return _open_too_long(connection, open_seconds)

    checks: dict[str, Check] = {
        "open reservation": open_too_long,
        "settled without a record": _settled_without_record,
        "record without a reservation": _records_without_reservation,
        "negative balance": _negative_balances,
        "balance": _balances,
        "held": _held,
        "concurrent": _concurrent,
    }
    for name, check in checks.items():
        yield from _bounded(name, check(connection))


def _bounded(name: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    yield from islice(findings, MOST_FINDINGS)
    if next(findings, None) is not None:
        yield Finding(name, "", f"there are more than {MOST_FINDINGS} of these")


def _open_too_long(connection: Connection, seconds: float) -> Iterator[Finding]:
    now = now_us(connection)
    rows = connection.execute(
        text("SELECT id, created_at, worker FROM reservations WHERE settled_at IS NULL AND created_at < :since"),
        {"since": now - round(seconds * SECOND)},
    )
    for id_, created_at, worker in rows:
        age = (now - created_at) // SECOND
        yield Finding("open reservation", id_, f"open for {age} s, by worker {worker}")


def _settled_without_record(connection: Connection) -> Iterator[Finding]:
    """Those of nobody are no reservations: they keep one from being made that had been given up. Refusals are none.

    Of the newest record retention may leave the correction alone.
    """
    rows = connection.execute(
        text(
            "SELECT r.id FROM reservations r WHERE r.settled_at IS NOT NULL AND r.organization_id <> ''"
            " AND r.refusal IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM usage_records u WHERE u.id IN (r.id, r.id || :correction))"
        ),
        {"correction": CORRECTION},
    )
    for (id_,) in rows:
        yield Finding("settled without a record", id_, "settled, but has no usage record")


def _records_without_reservation(connection: Connection) -> Iterator[Finding]:
    rows = connection.execute(
        text(
            "SELECT u.id FROM usage_records u WHERE NOT EXISTS"
            " (SELECT 1 FROM reservations r WHERE r.id = replace(u.id, :correction, '') AND r.settled_at IS NOT NULL)"
        ),
        {"correction": CORRECTION},
    )
    for (id_,) in rows:
        yield Finding("record without a reservation", id_, "a usage record without a settled reservation")


def _negative_balances(connection: Connection) -> Iterator[Finding]:
    """Buckets per minute may be negative for a while, by what an answer took beyond what was reserved for it.

    So may credits that an operator has taken away: that is a decision and no fault.
    """
    accounts = text(
        "SELECT a.organization_id, a.balance, a.balance - coalesce(c.taken, 0) FROM accounts a"
        " JOIN organizations o ON o.id = a.organization_id"
        " LEFT JOIN (SELECT organization_id, sum(amount) AS taken FROM credit_entries"
        " WHERE amount < 0 AND id <> :carried_forward || organization_id GROUP BY 1) c"
        " ON c.organization_id = a.organization_id"
        " WHERE o.prepaid AND a.balance - coalesce(c.taken, 0) < 0"
    )
    for organization, balance, spent in connection.execute(accounts, {"carried_forward": CARRIED_FORWARD}):
        words = f"its credits are {decimal(balance)}: it has used {decimal(-int(spent))} more than it was ever given"
        yield Finding("negative balance", organization, words)
    levels = text(
        "SELECT organization_id, model, kind, level FROM balances WHERE kind IN ('concurrent', 'quota') AND level < 0"
    )
    for organization, model, kind, level in connection.execute(levels):
        yield Finding("negative balance", organization, f"{kind} on {model} is {level}")


def _balances(connection: Connection) -> Iterator[Finding]:
    rows = connection.execute(
        text(
            "SELECT a.organization_id, a.balance, coalesce(c.amount, 0), coalesce(u.price, 0) FROM accounts a"
            " LEFT JOIN (SELECT organization_id, sum(amount) AS amount FROM credit_entries GROUP BY 1) c"
            " ON c.organization_id = a.organization_id"
            " LEFT JOIN (SELECT organization_id, sum(price) AS price FROM usage_records GROUP BY 1) u"
            " ON u.organization_id = a.organization_id"
            " WHERE a.balance <> coalesce(c.amount, 0) - coalesce(u.price, 0)"
        )
    )
    for organization, balance, credited, charged in rows:
        expected = f"{decimal(int(credited))} credited less {decimal(int(charged))} charged"
        yield Finding("balance", organization, f"its credits are {decimal(balance)}, but {expected}")


def _held(connection: Connection) -> Iterator[Finding]:
    rows = connection.execute(
        text(
            "SELECT a.organization_id, a.held, coalesce(r.hold, 0) FROM accounts a"
            " LEFT JOIN (SELECT organization_id, sum(hold) AS hold FROM reservations WHERE settled_at IS NULL"
            " GROUP BY 1) r ON r.organization_id = a.organization_id WHERE a.held <> coalesce(r.hold, 0)"
        )
    )
    for organization, held, expected in rows:
        words = f"{decimal(held)} is held, but its open reservations hold {decimal(int(expected))}"
        yield Finding("held", organization, words)


def _concurrent(connection: Connection) -> Iterator[Finding]:
    """How many are under way, against the open reservations that were counted, and what workers have leased."""
    counted = Counter[Key]()
    for row in connection.execute(text("SELECT * FROM reservations WHERE settled_at IS NULL")):
        counted.update(key for key in Reservation.of(row._asdict()).balance_keys() if key.kind == "concurrent")
    rows = connection.execute(
        text(
            "SELECT b.organization_id, b.model, b.kind, b.period, b.level - coalesce(sum(l.level), 0) FROM balances b"
            " LEFT JOIN leases l ON l.organization_id = b.organization_id AND l.model = b.model AND l.kind = b.kind"
            " AND l.period = b.period WHERE b.kind = 'concurrent' GROUP BY 1, 2, 3, 4, b.level"
        )
    )
    levels = {Key(*names): int(level) for *names, level in rows}
    for key in sorted(counted.keys() | levels.keys()):
        found, expected = levels.get(key, 0), counted[key]
        if found != expected:
            words = f"{found} requests on {key.model} are counted as under way, but {expected} reservations are open"
            yield Finding("concurrent", key.organization_id, words)
