"""Whatever is stored, continued, deleted, forbidden, shredded, repeated, cut short or forgotten, in whatever order: who
may see what is as it was promised, and nothing is there by half."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Connection, text

from sidecar.responses.level import Level
from sidecar.store.engine import open_engine
from sidecar.stored.keep import Announce, Withdraw
from sidecar.stored.keys import shred
from sidecar.stored.owner import Owner
from sidecar.stored.record import Record
from sidecar.stored.removal import Removal, Remove, remove_some
from sidecar.stored.zero_retention import no_longer_require, require
from tests.store.stored_kit import empty, keep, make_older, record, view
from tests.store.stored_model import LEVELS, ORGANIZATIONS, OWNERS, PAUSES, Model

owners = st.sampled_from(OWNERS)
levels = st.sampled_from(LEVELS)


class StoredStates(RuleBasedStateMachine):
    """Time is the test's own: to let it pass, all that is stored is made older."""

    responses = Bundle("responses")
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.engine = open_engine(self.url, "write", 5.0)
        self.model = Model()
        self.keys = set[str]()

    @initialize()
    def begin(self) -> None:
        with self.engine.begin() as connection:
            empty(connection)

    def of(self, id: str) -> Record:
        return self.model.known[id].record

    @rule(target=responses, owner=owners)
    def begin_a_conversation(self, owner: Owner) -> str:
        return self.keep(record(owner))

    @rule(target=responses, owner=owners)
    def announce_a_conversation(self, owner: Owner) -> str:
        return self.announce(record(owner, announced=True))

    @rule(target=responses, id=responses)
    def continue_one(self, id: str) -> str:
        return self.keep(record(self.of(id).place.owner, id))

    @rule(target=responses, id=responses)
    def announce_a_turn(self, id: str) -> str:
        return self.announce(record(self.of(id).place.owner, id, announced=True))

    def announce(self, one: Record) -> str:
        with self.engine.begin() as connection:
            (allowed,) = Announce().perform(connection, [one.place])
        assert allowed is self.model.announce(one)
        return one.place.response_id

    @rule(id=responses)
    def store_what_was_announced(self, id: str) -> None:
        self.keep(self.of(id))

    def keep(self, one: Record) -> str:
        with self.engine.begin() as connection:
            (outcome,) = keep(connection, one)
        self.keys.add(one.place.owner.organization)
        assert outcome is self.model.keep(one)
        return one.place.response_id

    @rule(id=responses)
    def die_before_the_commit(self, id: str) -> None:
        owner = self.of(id).place.owner
        with self.engine.connect() as connection:
            keep(connection, record(owner, id))
            Remove().perform(connection, [Removal(id, owner)])
            connection.rollback()

    @rule(id=responses, owner=owners)
    def delete(self, id: str, owner: Owner) -> None:
        with self.engine.begin() as connection:
            (removed,) = Remove().perform(connection, [Removal(id, owner)])
        assert removed is self.model.delete(id, owner)

    @rule(id=responses)
    def withdraw(self, id: str) -> None:
        with self.engine.begin() as connection:
            Withdraw().perform(connection, [id])
        self.model.withdraw(id)

    @rule(level=levels)
    def require_zero_retention(self, level: Level) -> None:
        with self.engine.begin() as connection:
            assert require(connection, level) == self.model.require(level)

    @rule(level=levels)
    def no_longer_require_it(self, level: Level) -> None:
        with self.engine.begin() as connection:
            assert no_longer_require(connection, level) is self.model.no_longer_require(level)

    @rule(organization=st.sampled_from(ORGANIZATIONS))
    def shred(self, organization: str) -> None:
        gone = self.model.end(Level(organization))
        with self.engine.begin() as connection:
            assert shred(connection, organization) == (gone if organization in self.keys else None)
        self.keys.discard(organization)

    @rule(elapsed=st.sampled_from(PAUSES))
    def let_time_pass(self, elapsed: int) -> None:
        with self.engine.begin() as connection:
            make_older(connection, elapsed)
        self.model.let_pass(elapsed)

    @rule()
    def forget_what_has_expired(self) -> None:
        with self.engine.begin() as connection:
            assert not remove_some(connection)
        self.model.forget()

    @invariant()
    def nothing_is_there_by_half(self) -> None:
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT id, stored_at FROM stored_responses")).all()
            contents = set(connection.scalars(text("SELECT response_id FROM stored_contents")))
        assert {row.id for row in rows} == {id for id, known in self.model.known.items() if known.row}
        assert {row.id for row in rows if row.stored_at is not None} == contents

    @rule(id=responses, other=owners)
    def look(self, id: str, other: Owner) -> None:
        with self.engine.connect() as connection:
            for owner in (self.of(id).place.owner, other):
                self.check(connection, id, owner)

    def check(self, connection: Connection, id: str, owner: Owner) -> None:
        assert view(connection, owner, id) == self.model.view(id, owner)

    def teardown(self) -> None:
        with self.engine.connect() as connection:
            for id in self.model.known:
                self.check(connection, id, self.of(id).place.owner)
        self.engine.dispose()


def test_no_order_of_events_breaks_a_promise(store_url: str) -> None:
    class OnThisStore(StoredStates):
        url = store_url

    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=20, stateful_step_count=25, deadline=None))
