"""Whatever is reserved, settled, repeated, rolled back or recovered, in whatever order and whatever the clock does: no
limit is overdrawn but by what answers took beyond their reservations, and all sums hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from sidecar.admission.balances import Key
from sidecar.admission.beats import ForgetWorkers
from sidecar.admission.buckets import MICRO
from sidecar.admission.directives import limits_of_user
from sidecar.admission.entries import Admitted, Entry, Outcome, ReservationRequest, Settlement
from sidecar.admission.ledger import GivenUpError, Ledger
from sidecar.admission.lessee import Lessee, ReturnLeases
from sidecar.admission.limits import Limits
from sidecar.admission.receipts import Log, read_log
from sidecar.admission.reservation import Reservation
from sidecar.admission.terms import TermsReader
from sidecar.responses.caller import Caller
from sidecar.responses.page import Page
from sidecar.store.engine import open_engine
from tests.store.ledger_kit import PRICE, PRICED, request

MINUTE = 60 * MICRO
START = 1_796_083_200 * MICRO
LIMITS = Limits(requests_per_minute=6, tokens_per_minute=1000, concurrent_requests=3, period="day", period_tokens=4000)
LARGE = Limits(
    requests_per_minute=60, tokens_per_minute=20_000, concurrent_requests=40, period="day", period_tokens=200_000
)
WORKERS = ("w1", "w2", "w3")
CREDIT = 800_000
TABLES = ("usage_records", "reservations", "leases", "balances", "accounts", "credit_entries", "organizations")

counts = st.integers(0, 300)


@dataclass
class Exact:
    """A bucket that leaves nothing out: its level in micro-units at a time, and how often it was touched."""

    limit: int
    level: Fraction
    at: int = START
    touched: int = 0

    def give(self, units: int, now: int) -> None:
        capacity = Fraction(self.limit * MICRO)
        refilled = min(capacity, self.level + Fraction(max(0, now - self.at) * self.limit, 60))
        self.level, self.at, self.touched = min(capacity, refilled + units * MICRO), now, self.touched + 1


@dataclass
class Known:
    """What the test knows of a reservation that was admitted; ``unseen`` tokens came to light after its settlement,
    which rates do not count."""

    request: ReservationRequest
    settlement: Settlement | None = None
    unseen: int = 0


class LedgerStates(RuleBasedStateMachine):
    """Two organizations, of which ``org_a`` has paid beforehand."""

    opened = Bundle("opened")
    ended = Bundle("ended")
    url = ""
    limits = LIMITS
    of_users = (4, 700)
    lease_seconds = 0

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.engine = open_engine(self.url, "write", 5.0)
        self.rates = {"requests": self.limits.requests_per_minute or 0, "tokens": self.limits.tokens_per_minute or 0}
        self.lessees = [Lessee(worker, self.lease_seconds) for worker in WORKERS] if self.lease_seconds else [None]
        terms = TermsReader(self.limits, seconds=0)
        self.ledgers = [Ledger(PRICED, terms, lambda connection: self.now, lessee) for lessee in self.lessees]
        self.ledger = self.ledgers[0]
        self.known: dict[str, Known] = {}
        # All that an organization's buckets may have given out, in micro-units, and what must be left in them.
        self.supply = Counter[tuple[str, str]]()
        self.buckets: dict[tuple[str, str], Exact] = {}

    @initialize()
    def begin(self) -> None:
        with self.engine.begin() as connection:
            for table in TABLES:
                connection.execute(text(f"DELETE FROM {table}"))
            connection.execute(
                text("INSERT INTO organizations (id, name, prepaid, created_at) VALUES ('org_a', 'a', true, 0)")
            )
            connection.execute(
                text("INSERT INTO accounts (organization_id, balance, held) VALUES ('org_a', :c, 0)"), {"c": CREDIT}
            )
            connection.execute(
                text(
                    "INSERT INTO credit_entries (id, organization_id, amount, reason, created_at)"
                    " VALUES ('c1', 'org_a', :c, '', 0)"
                ),
                {"c": CREDIT},
            )
        for organization in ("org_a", "org_b"):
            for kind, limit in self.rates.items():
                self.supply[organization, kind] = limit * MICRO
                self.buckets[organization, kind] = Exact(limit, Fraction(limit * MICRO))

    def book(self, *entries: Entry) -> list[Outcome | Exception]:
        with self.engine.begin() as connection:
            return list(self.ledger.perform(connection, entries))

    @rule(
        target=opened,
        organizations=st.lists(st.sampled_from(["org_a", "org_b"]), min_size=1, max_size=4),
        input_tokens=counts,
        output_tokens=counts,
        end_user=st.sampled_from([None, "ada", "bob"]),
    )
    def reserve(self, organizations: list[str], input_tokens: int, output_tokens: int, end_user: str | None) -> Any:
        asked = [
            request(
                organization_id=of,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                user_limits=tuple(limits_of_user(Caller(of), end_user, *self.of_users)),
            )
            for of in organizations
        ]
        outcomes = self.book(*asked)
        admitted = [one for one, outcome in zip(asked, outcomes, strict=True) if isinstance(outcome, Admitted)]
        for one in admitted:
            self.known[one.id] = Known(one)
            self.give(one, requests=-1, tokens=-one.tokens)
        return multiple(*(one.id for one in admitted))

    @rule(id=opened)
    def reserve_again(self, id: str) -> None:
        (outcome,) = self.book(self.known[id].request)
        assert isinstance(outcome, Admitted if self.known[id].settlement is None else GivenUpError)

    @rule(id=opened, output_tokens=counts)
    def die_before_the_commit(self, id: str, output_tokens: int) -> None:
        with self.engine.connect() as connection:
            entries: list[Entry] = [request(), self.settlement(id, output_tokens, output_tokens)]
            self.ledger.perform(connection, entries)
            connection.rollback()

    @rule(target=ended, id=consumes(opened), delivered=counts, beyond=counts)
    def settle(self, id: str, delivered: int, beyond: int) -> str:
        settlement = self.settlement(id, delivered, delivered + beyond)
        self.book(settlement)
        self.known[id].settlement = settlement
        asked = self.known[id].request
        self.give(asked, requests=0, tokens=asked.output_tokens - delivered - beyond)
        return id

    @rule(target=ended, id=consumes(opened), outcome=st.sampled_from(["infer_backend_unavailable", "client_gone"]))
    def settle_what_had_not_begun(self, id: str, outcome: str) -> str:
        self.known[id].settlement = settlement = Settlement(id, outcome, begun=False)
        self.book(settlement)
        asked = self.known[id].request
        self.give(asked, requests=0 if outcome == "client_gone" else 1, tokens=asked.tokens)
        return id

    @rule(target=ended, id=consumes(opened), delivered=counts, unseen=counts)
    def recover_and_be_corrected(self, id: str, delivered: int, unseen: int) -> str:
        self.book(replace(self.settlement(id, delivered, delivered), final=False))
        own = self.settlement(id, delivered + unseen, delivered + unseen)
        self.book(own, request(organization_id="org_c"))
        self.known[id].settlement, self.known[id].unseen = own, unseen
        asked = self.known[id].request
        self.give(asked, requests=0, tokens=asked.output_tokens - delivered)
        return id

    @rule(id=ended, final=st.booleans())
    def settle_again(self, id: str, final: bool) -> None:
        settlement = self.known[id].settlement
        assert settlement is not None
        self.book(replace(settlement, final=final))

    @rule(asked=st.builds(request))
    def give_up_before_it_is_made(self, asked: ReservationRequest) -> None:
        self.book(Settlement(asked.id, "client_gone", begun=False))
        assert isinstance(self.book(asked)[0], GivenUpError)

    @rule(elapsed=st.one_of(st.integers(0, 2 * MINUTE), st.sampled_from([3600 * MICRO, 86_400 * MICRO, 10**15])))
    def wait_or_jump(self, elapsed: int) -> None:
        self.now += elapsed
        for organization in ("org_a", "org_b"):
            for kind, limit in self.rates.items():
                self.supply[organization, kind] += min(limit * MICRO, elapsed * limit // 60)

    @rule(back=st.integers(1, 86_400 * MICRO))
    def jump_back(self, back: int) -> None:
        self.now = max(START, self.now - back)

    @rule(number=st.integers(0, len(WORKERS) - 1))
    def let_another_worker_go_on(self, number: int) -> None:
        self.ledger = self.ledgers[number % len(self.ledgers)]

    @rule(number=st.integers(0, len(WORKERS) - 1))
    def return_what_has_run_out(self, number: int) -> None:
        lessee = self.lessees[number % len(self.lessees)]
        if lessee is not None:
            with self.engine.begin() as connection:
                ReturnLeases(lambda connection: self.now).perform(connection, [lessee])

    @rule(worker=st.sampled_from(WORKERS))
    def take_a_worker_for_dead(self, worker: str) -> None:
        with self.engine.begin() as connection:
            ForgetWorkers().perform(connection, [worker])

    def give(self, of: ReservationRequest, *, requests: int, tokens: int) -> None:
        self.buckets[of.organization_id, "requests"].give(requests, self.now)
        self.buckets[of.organization_id, "tokens"].give(tokens, self.now)

    def settlement(self, id: str, delivered: int, generated: int) -> Settlement:
        return Settlement(
            id,
            "completed",
            begun=True,
            input_tokens=self.known[id].request.input_tokens,
            output_tokens=delivered,
            generated_tokens=generated,
        )

    def rows(self, sql: str) -> list[Mapping[str, Any]]:
        with self.engine.connect() as connection:
            return [row._asdict() for row in connection.execute(text(sql))]

    @invariant()
    def sums_hold(self) -> None:
        reservations = [Reservation.of(row) for row in self.rows("SELECT * FROM reservations")]
        opened = [one for one in reservations if one.settled_at is None]
        records = self.rows("SELECT * FROM usage_records")
        levels = {
            Key(row["organization_id"], row["model"], row["kind"], row["period"]): row["level"]
            for row in self.rows("SELECT * FROM balances")
        }
        leased = Counter[Key]()
        for row in self.rows("SELECT * FROM leases"):
            assert row["level"] >= 0
            leased[Key(row["organization_id"], row["model"], row["kind"], row["period"])] += row["level"]
        # What lies in leases is not given out yet.
        counts = {key: level - leased[key] for key, level in levels.items() if key.kind in ("concurrent", "quota")}
        assert {one.id for one in opened if one.organization_id in ("org_a", "org_b")} == {
            id for id, known in self.known.items() if known.settlement is None
        }
        self.nobody_has_too_many(opened, counts)
        self.quotas_are_what_was_used(reservations, records, counts)
        self.credits_are_what_was_paid(opened, records)
        self.records_are_what_was_delivered(records)
        self.buckets_gave_no_more_than_they_had(levels)

    def nobody_has_too_many(self, opened: list[Reservation], levels: Mapping[Key, int]) -> None:
        under_way = Counter(one.organization_id for one in opened)
        for key, level in levels.items():
            if key.kind == "concurrent":
                assert level == under_way[key.organization_id] <= (self.limits.concurrent_requests or 0)

    def quotas_are_what_was_used(
        self, reservations: Iterable[Reservation], records: Iterable[Mapping[str, Any]], levels: Mapping[Key, int]
    ) -> None:
        quota_of = {one.id: key for one in reservations for key in one.balance_keys() if key.kind == "quota"}
        used, beyond = Counter[Key](), Counter[Key]()
        for one in reservations:
            if one.settled_at is None:
                used[quota_of[one.id]] += one.tokens
        for record in records:
            id = record["id"].removesuffix("-correction")
            used[quota_of[id]] += record["input_tokens"] + record["output_tokens"]
        for one in reservations:
            if one.id in self.known and (settlement := self.known[one.id].settlement):
                beyond[quota_of[one.id]] += max(0, settlement.input_tokens + settlement.output_tokens - one.tokens)
        for key, level in levels.items():
            if key.kind == "quota":
                assert level == used[key] <= (self.limits.period_tokens or 0) + beyond[key]

    def credits_are_what_was_paid(self, opened: list[Reservation], records: Iterable[Mapping[str, Any]]) -> None:
        (account,) = self.rows("SELECT * FROM accounts")
        paid = sum(record["price"] for record in records if record["organization_id"] == "org_a")
        assert account["balance"] == CREDIT - paid
        assert account["held"] == sum(one.hold for one in opened if one.organization_id == "org_a")
        beyond = 0
        for known in self.known.values():
            settlement, asked = known.settlement, known.request
            if settlement is not None and settlement.begun and asked.organization_id == "org_a":
                price = PRICE.of(settlement.input_tokens, 0, settlement.output_tokens)
                beyond += max(0, price - PRICE.of(asked.input_tokens, 0, asked.output_tokens))
        assert account["balance"] - account["held"] >= -beyond

    def records_are_what_was_delivered(self, records: Iterable[Mapping[str, Any]]) -> None:
        output = Counter[str]()
        for record in records:
            output[record["id"].removesuffix("-correction")] += record["output_tokens"]
        settled = {id: known.settlement.output_tokens for id, known in self.known.items() if known.settlement}
        assert {id: output[id] for id in settled} == settled

    @rule()
    def receipts_tell_what_the_ledger_holds(self) -> None:
        receipts, page = [], Page(limit=100)
        with self.engine.connect() as connection:
            while True:
                listed = read_log(connection, Log("org_a"), page)
                receipts += listed["data"]
                if not listed["has_more"]:
                    break
                page = Page(limit=100, after=listed["last_id"])
        mine = {known.request.request_id: known for known in self.known.values()}
        mine = {id: known for id, known in mine.items() if known.request.organization_id == "org_a"}
        assert [one["id"] for one in receipts] == sorted(mine, key=lambda id: mine[id].request.id, reverse=True)
        (account,) = self.rows("SELECT * FROM accounts")
        charged = sum((Decimal(one["charge"] or 0) for one in receipts), Decimal(0))
        assert account["balance"] == CREDIT - int(charged.scaleb(9))
        held = sum((Decimal(one["hold"]) for one in receipts if one["outcome"] == "in_progress"), Decimal(0))
        assert account["held"] == int(held.scaleb(9))
        for one in receipts:
            settlement = mine[one["id"]].settlement
            assert (one["outcome"] == "in_progress") is (settlement is None)
            if settlement is not None:
                assert one["usage"]["output_tokens"] == settlement.output_tokens

    def buckets_gave_no_more_than_they_had(self, levels: Mapping[Key, int]) -> None:
        used, beyond = Counter[tuple[str, str]](), Counter[str]()
        for known in self.known.values():
            of, settlement = known.request.organization_id, known.settlement
            begun = settlement is None or settlement.begun or settlement.outcome == "client_gone"
            used[of, "requests"] += MICRO if begun else 0
            tokens = known.request.tokens
            if settlement is not None:
                generated = settlement.generated_tokens - known.unseen
                tokens = settlement.input_tokens + generated if settlement.begun else 0
                beyond[of] += max(0, tokens - known.request.tokens)
            used[of, "tokens"] += tokens * MICRO
        for key, level in levels.items():
            of = key.organization_id
            if (own := key.own_limit) is not None:
                assert -(beyond[of] if key.kind == "user_tokens" else 0) * MICRO <= level
                assert level <= own * MICRO
            if key.kind in ("requests", "tokens") and of in ("org_a", "org_b"):
                limit, exact = self.rates[key.kind], self.buckets[of, key.kind]
                overrun = beyond[of] * MICRO if key.kind == "tokens" else 0
                assert -overrun <= level
                if not self.lease_seconds:
                    assert level <= limit * MICRO
                    # Less than what a microsecond brings is lost each time.
                    assert exact.level - (limit // 60 + 2) * exact.touched <= level <= exact.level
                assert used[of, key.kind] <= self.supply[of, key.kind] + overrun

    def teardown(self) -> None:
        for id, known in self.known.items():
            if known.settlement is None:
                self.book(self.settlement(id, 1, 1))
        opened = self.rows("SELECT organization_id FROM reservations WHERE settled_at IS NULL")
        assert {row["organization_id"] for row in opened} <= {"org_c"}
        assert {row["held"] for row in self.rows("SELECT held FROM accounts")} <= {0}
        self.engine.dispose()


def test_no_order_of_events_overdraws_a_limit_or_breaks_a_sum(store_url: str) -> None:
    class OnThisStore(LedgerStates):
        url = store_url

    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=25, stateful_step_count=30, deadline=None))


def test_nor_do_workers_that_lease_whoever_of_them_dies(store_url: str) -> None:
    class OnThisStore(LedgerStates):
        url = store_url
        limits = LARGE
        lease_seconds = 30

    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=25, stateful_step_count=40, deadline=None))
