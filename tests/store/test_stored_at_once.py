"""What several workers do at once to one team's responses comes to the same as if they had done it one after another.

Nodes with a store of their own each, as workers have, do a few things at the same time: turns continue one response,
which is deleted meanwhile; zero retention is required in the midst of it; keys are thrown away; a worker is lost before
its commit. Some order must explain what each of them was told, and all that is there afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from sqlalchemy import Connection, Engine, text

from sidecar.responses.level import Level
from sidecar.store import Store, now_us
from sidecar.store.engine import open_engine
from sidecar.stored.chain import NotStored
from sidecar.stored.keep import MINUTE, Kept
from sidecar.stored.keys import shred
from sidecar.stored.owner import Owner
from sidecar.stored.record import Record
from sidecar.stored.removal import Expire
from sidecar.stored.responses import Forbidden, StoredResponses
from sidecar.stored.zero_retention import no_longer_require, require
from tests.store.stored_kit import MASTERS, empty, keep, make_older, record, view
from tests.store.stored_model import LEVELS, OWNERS, PAUSES, Model

NODES = 2


class Node:
    """A worker with its store, and beside it an administrator's command."""

    def __init__(self, url: str) -> None:
        self.store = Store(url, timeout=30)
        self.stored = StoredResponses(self.store, MASTERS)
        self._engine = open_engine(url, "write", 30.0)

    async def command(self, do: Callable[[Connection], Any]) -> Any:
        def run() -> Any:
            with self._engine.begin() as connection:
                return do(connection)

        return await asyncio.to_thread(run)

    async def lose(self, do: Callable[[Connection], Any]) -> None:
        """Do something and die before the commit."""

        def run() -> None:
            with self._engine.connect() as connection:
                do(connection)
                connection.rollback()

        await asyncio.to_thread(run)

    async def close(self) -> None:
        await self.store.close()
        self._engine.dispose()


class Event:
    """Something that happens: what a node is told, and what the model says."""

    async def on(self, node: Node) -> Any:
        raise NotImplementedError

    def in_theory(self, model: Model) -> Any:
        raise NotImplementedError


@dataclass
class Announce(Event):
    record: Record

    async def on(self, node: Node) -> Any:
        try:
            await node.stored.announce(self.record.place)
        except Forbidden:
            return False
        return True

    def in_theory(self, model: Model) -> Any:
        return model.announce(self.record)


@dataclass
class Keep(Event):
    record: Record

    async def on(self, node: Node) -> Any:
        return await node.stored.keep(self.record)

    def in_theory(self, model: Model) -> Any:
        return model.keep(self.record) is Kept.STORED


@dataclass
class Lose(Event):
    record: Record

    async def on(self, node: Node) -> Any:
        await node.lose(lambda connection: keep(connection, self.record))

    def in_theory(self, model: Model) -> Any:
        return None


@dataclass
class Delete(Event):
    id: str
    owner: Owner

    async def on(self, node: Node) -> Any:
        try:
            await node.stored.remove(self.owner, self.id)
        except NotStored:
            return False
        return True

    def in_theory(self, model: Model) -> Any:
        return model.delete(self.id, self.owner)


@dataclass
class Withdraw(Event):
    id: str

    async def on(self, node: Node) -> Any:
        await node.stored.withdraw(self.id)

    def in_theory(self, model: Model) -> Any:
        return model.withdraw(self.id)


@dataclass
class Look(Event):
    id: str
    owner: Owner

    async def on(self, node: Node) -> Any:
        return await node.store.read(lambda connection: view(connection, self.owner, self.id))

    def in_theory(self, model: Model) -> Any:
        return model.view(self.id, self.owner)


@dataclass
class Require(Event):
    level: Level

    async def on(self, node: Node) -> Any:
        return await node.command(lambda connection: require(connection, self.level))

    def in_theory(self, model: Model) -> Any:
        return model.require(self.level)


@dataclass
class NoLongerRequire(Event):
    level: Level

    async def on(self, node: Node) -> Any:
        return await node.command(lambda connection: no_longer_require(connection, self.level))

    def in_theory(self, model: Model) -> Any:
        return model.no_longer_require(self.level)


@dataclass
class Shred(Event):
    """A turn that is stored may get its key before, and be stored with another one after: what is told of the key is
    not looked at."""

    organization: str

    async def on(self, node: Node) -> Any:
        await node.command(lambda connection: shred(connection, self.organization))

    def in_theory(self, model: Model) -> Any:
        model.end(Level(self.organization))


@dataclass
class Forget(Event):
    async def on(self, node: Node) -> Any:
        await node.store.run(Expire(), None)

    def in_theory(self, model: Model) -> Any:
        model.forget()


@dataclass(frozen=True)
class Draft:
    """An event to be: ``number`` picks one of the responses that there are by then."""

    kind: str
    number: int
    owner: Owner
    level: Level

    def event(self, model: Model) -> Event:
        known = list(model.known)
        id = known[self.number % len(known)]
        old = model.known[id].record
        owner = old.place.owner
        events: dict[str, Callable[[], Event]] = {
            "begin": lambda: Keep(record(self.owner)),
            "go on": lambda: Keep(record(owner, id)),
            "announce": lambda: Announce(record(owner, id, announced=True)),
            "keep": lambda: Keep(old),
            "lose": lambda: Lose(record(owner, id)),
            "delete": lambda: Delete(id, owner),
            "withdraw": lambda: Withdraw(id),
            "look": lambda: Look(id, owner),
            "look as another": lambda: Look(id, self.owner),
            "require": lambda: Require(self.level),
            "no longer require": lambda: NoLongerRequire(self.level),
            "shred": lambda: Shred(owner.organization),
            "forget": Forget,
        }
        return events[self.kind]()


# What happens often stands twice.
KINDS = [
    *("begin", "go on", "go on", "announce", "keep", "keep", "lose", "delete", "delete", "withdraw", "look", "look"),
    *("look as another", "require", "no longer require", "no longer require", "shred", "forget"),
]
drafts = st.builds(Draft, st.sampled_from(KINDS), st.integers(0, 7), st.sampled_from(OWNERS), st.sampled_from(LEVELS))


class StoredAtOnce(RuleBasedStateMachine):
    """Time is the test's own: to let it pass, all that is stored is made older."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.engine: Engine = open_engine(self.url, "write", 30.0)
        self.nodes = [Node(self.url) for _ in range(NODES)]
        self.model = Model()

    @initialize()
    def begin(self) -> None:
        with self.engine.begin() as connection:
            empty(connection)
        for owner in (OWNERS[0], OWNERS[1], OWNERS[3]):
            self.happens([Keep(record(owner))])

    @rule(drafts=st.lists(drafts, min_size=2, max_size=4))
    def at_once(self, drafts: list[Draft]) -> None:
        self.happens([draft.event(self.model) for draft in drafts])

    @rule(elapsed=st.sampled_from(PAUSES))
    def time_passes(self, elapsed: int) -> None:
        with self.engine.begin() as connection:
            make_older(connection, elapsed)
        self.model.let_pass(elapsed)

    def happens(self, events: list[Event]) -> None:
        told = self.loop.run(self._all(events))
        with self.engine.connect() as connection:
            found = found_in(connection)
            fitting = [model for model in self._in_theory(events, told) if fits(model, found)]
            assert fitting, f"no order explains {list(zip(events, told, strict=True))}"
            self.model = fitting[0]
            for id, known in self.model.known.items():
                for owner in (known.owner, OWNERS[0]):
                    assert view(connection, owner, id) == self.model.view(id, owner)

    async def _all(self, events: list[Event]) -> list[Any]:
        return await asyncio.gather(*(event.on(self.nodes[at % NODES]) for at, event in enumerate(events)))

    def _in_theory(self, events: list[Event], told: list[Any]) -> Iterator[Model]:
        """The model after each order in which all would have been told the same."""
        for order in permutations(range(len(events))):
            model = self.model.copy()
            if all(events[at].in_theory(model) == told[at] for at in order):
                yield model

    def teardown(self) -> None:
        for node in self.nodes:
            self.loop.run(node.close())
        self.loop.close()
        self.engine.dispose()


@dataclass
class Found:
    """What is in the store: for how long each response is kept, 0 where it was ended, and which have contents."""

    remaining: dict[str, int]
    stored: set[str]
    contents: set[str]
    levels: set[Level]


def found_in(connection: Connection) -> Found:
    now = now_us(connection)
    rows = connection.execute(text("SELECT id, stored_at, expires_at FROM stored_responses")).all()
    levels = connection.execute(text("SELECT organization_id, project, environment FROM zero_retention"))
    return Found(
        {row.id: row.expires_at and row.expires_at - now for row in rows},
        {row.id for row in rows if row.stored_at is not None},
        set(connection.scalars(text("SELECT response_id FROM stored_contents"))),
        {Level(*row) for row in levels},
    )


def fits(model: Model, found: Found) -> bool:
    rows = {id: known for id, known in model.known.items() if known.row}
    return (
        rows.keys() == found.remaining.keys()
        and {id for id, known in rows.items() if known.stored} == found.stored == found.contents
        and model.forbidden == found.levels
        and all(_expires_then(known.expires_at, model.now, found.remaining[id]) for id, known in rows.items())
    )


def _expires_then(expires_at: int, now: int, remaining: int) -> bool:
    if not (expires_at and remaining):
        return expires_at == remaining
    # The store's clock goes on.
    return abs(expires_at - now - remaining) < MINUTE


def test_what_happens_at_once_could_have_happened_one_after_another(store_url: str) -> None:
    class OnThisStore(StoredAtOnce):
        url = store_url

    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=10, stateful_step_count=10, deadline=None))
