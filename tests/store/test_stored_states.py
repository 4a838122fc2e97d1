"""Whatever is stored, continued, deleted, forbidden, shredded, repeated, cut short or forgotten, in whatever order: who
may see what is as it was promised, and nothing is there by half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Connection, text

from sidecar.store.engine import open_engine
from sidecar.stored.chain import NotStored, StillMade, read_chain
from sidecar.stored.keep import GRACE, LONGEST, MINUTE, Announce, Kept, Withdraw
from sidecar.stored.keys import shred
from sidecar.stored.owner import Owner
from sidecar.stored.record import DAY, KEPT, Record
from sidecar.stored.removal import Removal, Remove, remove_some
from sidecar.stored.zero_retention import Level, no_longer_require, require
from tests.store.stored_kit import MASTERS, keep, record, texts

OWNERS = [Owner("org_a", "p", "e"), Owner("org_a", "p", "f"), Owner("org_a", "q", "e"), Owner("org_b", "p", "e")]
LEVELS = [Level("org_a"), Level("org_a", "p"), Level("org_a", "p", "f"), Level("org_b")]
TABLES = ("stored_contents", "stored_responses", "stored_keys", "zero_retention")
# Of no sum of these anything expires to the minute: the clock goes on while the test runs.
PAUSES = [7 * MINUTE, LONGEST + 4 * MINUTE, 11 * DAY + MINUTE, 16 * DAY + MINUTE, KEPT + 4 * MINUTE]

owners = st.sampled_from(OWNERS)
levels = st.sampled_from(LEVELS)


@dataclass
class Known:
    """What the test knows of a response: when it expires, 0 where it was ended, and what is left of it."""

    record: Record
    expires_at: int
    stored: bool = False
    row: bool = True

    @property
    def id(self) -> str:
        return self.record.place.response_id

    @property
    def owner(self) -> Owner:
        return self.record.place.owner


class StoredStates(RuleBasedStateMachine):
    """Time is the test's own: to let it pass, all that is stored is made older."""

    responses = Bundle("responses")
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.engine = open_engine(self.url, "write", 5.0)
        self.known: dict[str, Known] = {}
        self.forbidden = set[Level]()
        self.keys = set[str]()
        self.now = 0

    @initialize()
    def begin(self) -> None:
        with self.engine.begin() as connection:
            for table in TABLES:
                connection.execute(text(f"DELETE FROM {table}"))

    def refused(self, owner: Owner) -> bool:
        return any(level.covers(owner) for level in self.forbidden)

    def visible(self, known: Known) -> bool:
        return known.row and known.expires_at > self.now

    def chain(self, known: Known | None) -> list[Known]:
        """From a response back, as far as the rows go."""
        found = []
        while known is not None and known.row:
            found.append(known)
            known = self.known.get(known.record.place.previous_id or "")
        return found

    def conversation(self, known: Known) -> list[Known]:
        found: list[Known] = []
        for one in self.chain(known):
            if not (self.visible(one) and one.stored):
                break
            found.append(one)
        return found

    @rule(target=responses, owner=owners)
    def begin_a_conversation(self, owner: Owner) -> str:
        return self.take(record(owner))

    @rule(target=responses, owner=owners)
    def announce_a_conversation(self, owner: Owner) -> str:
        return self.announce(record(owner, announced=True))

    @rule(target=responses, id=responses)
    def continue_one(self, id: str) -> str:
        return self.take(record(self.known[id].owner, id))

    @rule(target=responses, id=responses)
    def announce_a_turn(self, id: str) -> str:
        return self.announce(record(self.known[id].owner, id, announced=True))

    def announce(self, one: Record) -> str:
        with self.engine.begin() as connection:
            (allowed,) = Announce().perform(connection, [one.place])
        assert allowed is not self.refused(one.place.owner)
        self.known[one.place.response_id] = Known(one, self.now + LONGEST, row=allowed)
        return one.place.response_id

    def take(self, one: Record) -> str:
        self.known[one.place.response_id] = known = Known(one, 0, row=False)
        self.finish(known)
        return known.id

    @rule(id=responses)
    def store_what_was_announced(self, id: str) -> None:
        self.finish(self.known[id])

    def finish(self, known: Known) -> None:
        with self.engine.begin() as connection:
            (outcome,) = keep(connection, known.record)
        self.keys.add(known.owner.organization)
        ended = known.row and known.expires_at <= max(0, self.now - GRACE)
        there = known.row and not ended
        if self.refused(known.owner):
            assert outcome is Kept.FORBIDDEN
        elif there and known.stored:
            assert outcome is Kept.STORED
        elif ended or (known.record.announced and not there):
            assert outcome is Kept.DELETED
        else:
            assert outcome is Kept.STORED
            known.row = known.stored = True
            known.expires_at = max(known.expires_at, self.now + KEPT)
            self.extend(known)

    def extend(self, known: Known) -> None:
        for one in self.chain(known):
            if one.expires_at > max(0, self.now - GRACE):
                one.expires_at = max(one.expires_at, self.now + KEPT)

    @rule(id=responses)
    def die_before_the_commit(self, id: str) -> None:
        one = record(self.known[id].owner, id)
        with self.engine.connect() as connection:
            keep(connection, one)
            Remove().perform(connection, [Removal(id, self.known[id].owner)])
            connection.rollback()

    @rule(id=responses, owner=owners)
    def delete(self, id: str, owner: Owner) -> None:
        known = self.known[id]
        with self.engine.begin() as connection:
            (removed,) = Remove().perform(connection, [Removal(id, owner)])
        assert removed is (owner == known.owner and self.visible(known))
        known.row = known.row and not removed

    @rule(id=responses)
    def withdraw(self, id: str) -> None:
        with self.engine.begin() as connection:
            Withdraw().perform(connection, [id])
        known = self.known[id]
        known.row = known.row and known.stored

    @rule(level=levels)
    def require_zero_retention(self, level: Level) -> None:
        with self.engine.begin() as connection:
            require(connection, level)
        self.forbidden.add(level)
        self.end(level)

    @rule(level=levels)
    def no_longer_require_it(self, level: Level) -> None:
        with self.engine.begin() as connection:
            assert no_longer_require(connection, level) is (level in self.forbidden)
        self.forbidden.discard(level)

    @rule(organization=st.sampled_from(["org_a", "org_b"]))
    def shred(self, organization: str) -> None:
        with self.engine.begin() as connection:
            assert (shred(connection, organization) is not None) is (organization in self.keys)
        self.keys.discard(organization)
        self.end(Level(organization))

    def end(self, level: Level) -> None:
        for known in self.known.values():
            if known.row and level.covers(known.owner):
                known.expires_at = 0

    @rule(elapsed=st.sampled_from(PAUSES))
    def let_time_pass(self, elapsed: int) -> None:
        with self.engine.begin() as connection:
            connection.execute(
                text("UPDATE stored_responses SET expires_at = expires_at - :t WHERE expires_at > 0"), {"t": elapsed}
            )
        self.now += elapsed

    @rule()
    def forget_what_has_expired(self) -> None:
        with self.engine.begin() as connection:
            assert not remove_some(connection)
        for known in self.known.values():
            known.row = known.row and known.expires_at > max(0, self.now - GRACE)

    @invariant()
    def nothing_is_there_by_half(self) -> None:
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT id, stored_at FROM stored_responses")).all()
            contents = set(connection.scalars(text("SELECT response_id FROM stored_contents")))
        assert {row.id for row in rows} == {id for id, known in self.known.items() if known.row}
        assert {row.id for row in rows if row.stored_at is not None} == contents

    @rule(id=responses, other=owners)
    def look(self, id: str, other: Owner) -> None:
        known = self.known[id]
        with self.engine.connect() as connection:
            self.check(connection, known)
            if other != known.owner:
                assert self.seen(connection, other, known) is NotStored

    def check(self, connection: Connection, known: Known) -> None:
        if not self.visible(known):
            assert self.seen(connection, known.owner, known) is NotStored
        elif not known.stored:
            assert self.seen(connection, known.owner, known) is StillMade
        else:
            told = self.conversation(known)
            said = [f"turn {one.id.removeprefix('resp_')}" for one in reversed(told)]
            assert texts(connection, known.owner, known.id)[::2] == said
            whole = told[-1].record.place.previous_id is None
            assert read_chain(connection, MASTERS, known.owner, known.id).whole is whole

    def seen(self, connection: Connection, owner: Owner, known: Known) -> Any:
        try:
            return read_chain(connection, MASTERS, owner, known.id)
        except (NotStored, StillMade) as error:
            return type(error)

    def teardown(self) -> None:
        with self.engine.connect() as connection:
            for known in self.known.values():
                self.check(connection, known)
        self.engine.dispose()


def test_no_order_of_events_breaks_a_promise(store_url: str) -> None:
    class OnThisStore(StoredStates):
        url = store_url

    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=20, stateful_step_count=25, deadline=None))
