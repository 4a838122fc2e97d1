"""The settlements of one transaction: what they give back, the records they leave, and what they correct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection

from sidecar.admission import bill, statements
from sidecar.admission.accounts import Accounts
from sidecar.admission.balances import Balances, Key, Limit
from sidecar.admission.entries import Entry, ImagesFetched, Settled, Settlement
from sidecar.admission.prices import PriceList
from sidecar.admission.reservation import Reservation, void_row
from sidecar.admission.settle import difference, give_back, unused, unused_images
from sidecar.admission.terms import TermsReader


class Settlements:
    """Those among ``entries``; ``found`` are the reservations as the store has them, locked.

    ``outcomes`` are by the reservation's id. ``voided`` are rows for those that were never made.
    """

    def __init__(
        self,
        connection: Connection,
        entries: Iterable[Entry],
        found: Mapping[str, Reservation],
        prices: PriceList,
        now: int,
    ) -> None:
        self._connection = connection
        self._found = found
        self._now = now
        entries = list(entries)
        settlements = {entry.id: entry for entry in entries if isinstance(entry, Settlement)}
        opened = {id: of for id, of in found.items() if of.settled_at is None}
        self._ending = [(of, settlements[id]) for id, of in opened.items() if id in settlements]
        # What is settled in the same transaction says itself how much was fetched.
        self._fetched = [
            (opened[entry.id], entry.used)
            for entry in entries
            if isinstance(entry, ImagesFetched) and entry.id in opened and entry.id not in settlements
        ]
        late = [(of, settlements[id]) for id, of in found.items() if of.settled_at is not None and id in settlements]
        self._records = {of.id: self._bill(of, settlement, prices) for of, settlement in [*self._ending, *late]}
        self._earlier = self._read_records([of.id for of, _ in late])
        self._corrections = [(of, wrong) for of, settlement in late if (wrong := self._correction(of, settlement))]
        self.voided = [void_row(id, now) for id in settlements if id not in found]
        self.outcomes = {
            **{id: Settled(0, known=False) for id in settlements if id not in found},
            **{of.id: Settled(self._records[of.id]["price"], known=True) for of, _ in self._ending},
            **{of.id: Settled(self._charged(of, settlement), known=True) for of, settlement in late},
        }

    def balance_keys(self) -> set[Key]:
        """The balances that something is given back to."""
        concerned = [*(of for of, _ in self._ending), *(of for of, _ in self._fetched)]
        return {key for of in [*concerned, *(of for of, _ in self._corrections)] for key in of.balance_keys()}

    def limits(self, terms: TermsReader) -> dict[Key, Limit]:
        """The limits of today that are kept in these balances."""
        concerned = {(of.organization_id, of.model) for of, _, _ in self.given_back()}
        return {limit.key: limit for names in concerned for limit in terms.limits(*names, self._now)}

    def debtors(self) -> set[str]:
        """The organizations whose credits change, where they have an account."""
        ending = {of.organization_id for of, _ in self._ending if of.hold or self._records[of.id]["price"]}
        return ending | {of.organization_id for of, wrong in self._corrections if wrong["price"]}

    def given_back(self) -> Iterator[tuple[Reservation, Key, int]]:
        """What goes back to each balance, in its units; negative where more was used than had been reserved."""
        for of, settlement in self._ending:
            yield from ((of, key, units) for key, units in unused(of, settlement, self._records[of.id]))
        for of, used in self._fetched:
            yield from ((of, key, units) for key, units in unused_images(of, used))
        for of, wrong in self._corrections:
            yield from ((of, key, units) for key, units in difference(wrong, of))

    def book(self, terms: TermsReader, balances: Balances, accounts: Accounts) -> None:
        """Give back what was not used, and charge what was."""
        for of, key, units in self.given_back():
            give_back(key, units, terms.limits(of.organization_id, of.model, self._now), balances)
        for of, _ in self._ending:
            accounts.charge(of.organization_id, self._records[of.id]["price"], held=of.hold)
        for of, wrong in self._corrections:
            accounts.charge(of.organization_id, wrong["price"], held=0)

    def write(self) -> None:
        """Write the ends of the reservations, and the records."""
        ends = [
            {"id": of.id, "settled_at": self._now, "image_bytes": self._records[of.id]["image_bytes"]}
            for of, _ in self._ending
        ]
        fetched = [{"id": of.id, "settled_at": None, "image_bytes": used} for of, used in self._fetched]
        statements.END_RESERVATIONS.run(self._connection, [*ends, *fetched])
        records = [self._records[of.id] for of, _ in self._ending]
        statements.ADD_RECORDS.run(self._connection, [*records, *(wrong for _, wrong in self._corrections)])

    def _bill(self, of: Reservation, settlement: Settlement, prices: PriceList) -> dict[str, Any]:
        counted = bill.counts(of, settlement)
        price = bill.price_of(of, counted, prices, settlement.searches if settlement.begun else 0)
        return bill.record(of, settlement, counted, price, now=self._now)

    def _read_records(self, ids: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
        asked = [{"id": name} for id in ids for name in (id, f"{id}-correction")]
        return {row.id: row._asdict() for row in statements.FIND_RECORDS.run(self._connection, asked)}

    def _correction(self, of: Reservation, settlement: Settlement) -> dict[str, Any] | None:
        earlier = self._earlier.get(of.id)
        if not settlement.final or earlier is None or f"{of.id}-correction" in self._earlier:
            return None
        return bill.correction(self._records[of.id], earlier)

    def _charged(self, of: Reservation, settlement: Settlement) -> int:
        """What all records of a reservation come to that had been settled before."""
        if self._correction(of, settlement) is not None:
            return int(self._records[of.id]["price"])
        return sum(
            int(record["price"]) for id, record in self._earlier.items() if id.removesuffix("-correction") == of.id
        )
