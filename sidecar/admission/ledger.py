"""The ledger's transactions: reservations and settlements that wait together, in a constant number of statements.

One kind of work makes both, so that each balance is locked once, in one order, whatever a transaction holds; and what
is settled in it has been given back before who asks in it is decided on. Everything may be repeated: a reservation that
was made is not made again, and a settlement counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from sqlalchemy import Connection

from sidecar.admission import statements
from sidecar.admission.accounts import Accounts
from sidecar.admission.balance_rows import balance_rows, lock_balances, write_balances
from sidecar.admission.balances import Balances, Key, Level, Limit
from sidecar.admission.decide import Applicant, decide, most_needed
from sidecar.admission.entries import Admitted, Entry, ImagesFetched, Outcome, ReservationRequest
from sidecar.admission.leases import Flow
from sidecar.admission.lessee import Lessee
from sidecar.admission.prices import PriceList
from sidecar.admission.reservation import Reservation, new_row
from sidecar.admission.settlements import Settlements
from sidecar.admission.terms import TermsReader
from sidecar.store import now_us

_MOST_KNOWN = 100_000


class GivenUpError(Exception):
    """A reservation that had been given up before it was made."""


class Ledger:
    """The operation of :class:`~sidecar.store.Store` that books. There is one object in a process.

    The outcome of a :class:`ReservationRequest` is :class:`Admitted` or :class:`Refused`, of a :class:`Settlement` it
    is :class:`Settled`, of :class:`ImagesFetched` nothing.
    """

    def __init__(
        self,
        prices: PriceList,
        terms: TermsReader,
        clock: Callable[[Connection], int] = now_us,
        lessee: Lessee | None = None,
    ) -> None:
        """``clock`` is the store's, in microseconds since the epoch. Without a ``lessee`` nothing is leased."""
        self._prices = prices
        self._terms = terms
        self._clock = clock
        self._lessee = lessee
        # Balances that are there, most likely.
        self._known: set[Key] = set()

    def perform(self, connection: Connection, items: Sequence[Entry]) -> Sequence[Outcome | Exception]:
        """Book all ``items`` in the transaction that is open on ``connection``."""
        now = self._clock(connection)
        rows = statements.LOCK_RESERVATIONS.run(connection, [{"id": id} for id in sorted({item.id for item in items})])
        found = {row.id: Reservation.of(row._asdict()) for row in rows}
        requests = [item for item in items if isinstance(item, ReservationRequest)]
        organizations = {request.organization_id for request in requests}
        self._terms.load(connection, organizations | {of.organization_id for of in found.values()})

        settlements = Settlements(connection, items, found, self._prices, now)
        new = [request for request in requests if request.id not in found]
        limits = {
            request.id: (
                *self._terms.limits(request.organization_id, request.model, now),
                *request.user_limits,
            )
            for request in new
        }
        asked = {limit.key: limit for of in limits.values() for limit in of}
        keys = {*asked, *settlements.balance_keys()}
        leased = None
        if self._lessee is not None:
            # End users are many, and have little each: their balances are not leased.
            known = {**settlements.limits(self._terms), **{key: asked[key] for key in asked if key.own_limit is None}}
            leased = self._lessee.lock(connection, keys, known, _flows(settlements, new, limits), now)
            keys -= leased.sufficient
        levels = self._lock_balances(connection, asked, keys, now)
        # The time after the wait for the locks: by the one before it, a bucket could have been filled beyond it, and
        # the time between would count twice.
        locked_at = self._clock(connection) if keys else now
        balances = Balances(levels, locked_at) if leased is None else leased.balances(levels, locked_at)
        prices = {request.id: self._estimate(request, now) for request in new}
        accounts = Accounts(connection, settlements.debtors() | self._debtors(new, prices))

        settlements.book(self._terms, balances, accounts)
        outcomes: dict[str, Outcome | Exception] = {**settlements.outcomes}
        admitted = []
        for request in requests:
            if request.id in found:
                outcomes[request.id] = _made_before(found[request.id])
                continue
            price = prices[request.id]
            account = accounts.of(request.organization_id) if self._terms.prepaid(request.organization_id) else None
            outcome = decide(Applicant(request, limits[request.id], price, account), balances)
            outcomes[request.id] = outcome
            if isinstance(outcome, Admitted):
                hold = price if account is not None else 0
                image_bytes = outcome.image_bytes or 0
                admitted.append(new_row(request, limits[request.id], image_bytes=image_bytes, hold=hold, now=now))

        settlements.write()
        statements.ADD_RESERVATIONS.run(connection, [*admitted, *settlements.voided])
        write_balances(connection, balances.changed() if leased is None else leased.write(connection, balances))
        accounts.write()
        return [outcomes[item.id] if not isinstance(item, ImagesFetched) else None for item in items]

    def _lock_balances(
        self, connection: Connection, asked: Mapping[Key, Limit], keys: Set[Key], now: int
    ) -> dict[Key, Level]:
        """The balances ``keys``. Those that are ``asked`` for and do not exist yet begin with nothing taken.

        Missing ones are added before any is locked: whoever held locks while waiting for another to have added one
        could be waited for by that other.
        """
        wanted = [asked[key] for key in sorted(asked.keys() & keys)]
        self._add_balances(connection, [limit for limit in wanted if limit.key not in self._known], now)
        levels = lock_balances(connection, keys)
        missing = [limit for limit in wanted if limit.key not in levels]
        if missing:
            # They have been deleted, or the transaction that added them was rolled back.
            self._add_balances(connection, missing, now)
            levels = lock_balances(connection, keys)
        return levels

    def _add_balances(self, connection: Connection, limits: Sequence[Limit], now: int) -> None:
        rows = balance_rows({limit.key: limit.start(now) for limit in limits})
        statements.ADD_BALANCES.run(connection, rows)
        if len(self._known) + len(rows) > _MOST_KNOWN:
            self._known.clear()
        self._known.update(limit.key for limit in limits)

    def _estimate(self, request: ReservationRequest, now: int) -> int:
        price = self._prices.find(request.model, now)
        return price.of(request.input_tokens, 0, request.output_tokens, request.searches) if price is not None else 0

    def _debtors(self, requests: Iterable[ReservationRequest], prices: Mapping[str, int]) -> set[str]:
        return {
            request.organization_id
            for request in requests
            if prices[request.id] and self._terms.prepaid(request.organization_id)
        }


def _made_before(reservation: Reservation) -> Admitted | GivenUpError:
    if reservation.settled_at is not None:
        return GivenUpError(f"the reservation {reservation.id} had been given up")
    return Admitted(image_bytes=reservation.image_bytes)


def _flows(
    settlements: Settlements, new: Iterable[ReservationRequest], limits: Mapping[str, Sequence[Limit]]
) -> Mapping[Key, Flow]:
    """What a transaction does with each balance if all that are ``new`` are admitted."""
    flows: defaultdict[Key, Flow] = defaultdict(Flow)
    for _, key, units in settlements.given_back():
        flows[key].given += max(0, units)
        flows[key].taken += max(0, -units)
    for request in new:
        for limit in limits[request.id]:
            flows[limit.key].wanted += most_needed(limit, request)
    return flows
