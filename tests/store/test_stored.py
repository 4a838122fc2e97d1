"""Stored responses on both engines: stored whole or not at all, seen by their owner alone, kept with their chain."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, text

from sidecar.exchange import store as asks
from sidecar.exchange.load import Load
from sidecar.exchange.look_up import LookUp
from sidecar.responses.errors import ApiError
from sidecar.responses.level import Level
from sidecar.responses.page import Page
from sidecar.server.patience import Patience
from sidecar.server.storing import Storing
from sidecar.store import Store, chores, connect, repeat_forever
from sidecar.store.engine import sqlite_file
from sidecar.stored import chain as chains
from sidecar.stored import removal, responses
from sidecar.stored.chain import NotStored, StillMade, TooLong
from sidecar.stored.keep import GRACE, LONGEST
from sidecar.stored.keys import shred
from sidecar.stored.master_keys import MasterKeys
from sidecar.stored.owner import Owner
from sidecar.stored.record import DAY, KEPT, MOST_BYTES
from sidecar.stored.responses import Forbidden, StoredResponses
from sidecar.stored.seals import SealBroken
from sidecar.stored.zero_retention import no_longer_require, require
from sidecar.surfaces.endpoints import Operation
from stack.paths import ROOT
from stack.postgres import Postgres
from tests.store.stored_kit import MASTERS, OWNER, let_pass, record, rows
from tests.store.unreliable import Unreliable

OTHERS = [
    replace(OWNER, organization="org_b"),
    replace(OWNER, project="search"),
    replace(OWNER, environment="staging"),
    Owner("org_a"),
]


OWN = MasterKeys([bytes(range(32, 64))])


async def test_a_node_without_the_newest_master_key_says_so_at_start_and_when_asked(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    (id_,) = await chain(StoredResponses(store, MASTERS), 1)
    storing = Storing(StoredResponses(store, OWN), Patience())
    await storing.look_at_keys()
    load, look_up = Load(OWNER, id_), LookUp(Operation.RETRIEVE_RESPONSE, id_, OWNER, Page())
    for asking in (storing.load(load), storing.look_up(look_up)):
        with pytest.raises(ApiError) as refused:
            await asking
        assert refused.value.code == "node_unavailable"
    at_start, *when_asked = caplog.messages
    assert at_start.startswith(f"1 data keys are wrapped by the master key {MASTERS.first}, which is not configured")
    assert len(when_asked) == 2
    assert all(id_ in line and MASTERS.first in line for line in when_asked)
    assert not any(record.exc_info for record in caplog.records)


async def test_a_node_with_all_keys_says_nothing_at_start(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    await chain(StoredResponses(store, MASTERS), 1)
    await Storing(StoredResponses(store, MASTERS), Patience()).look_at_keys()
    assert caplog.messages == []


@pytest.fixture
def stored(store: Store) -> StoredResponses:
    return StoredResponses(store, MASTERS)


def expiries(url: str) -> dict[str, int]:
    return {row["id"]: row["expires_at"] for row in rows(url, "SELECT id, expires_at FROM stored_responses")}


async def chain(stored: StoredResponses, length: int, previous: str | None = None) -> list[str]:
    ids = []
    for turn in range(length):
        one = record(previous=previous, said=f"said {turn}", answered=f"answered {turn}")
        assert await stored.keep(one)
        previous = one.place.response_id
        ids.append(previous)
    return ids


async def heard(stored: StoredResponses, id_: str, owner: Owner = OWNER) -> list[str]:
    """What is said in the conversation that a turn continues."""
    lines = [line for text_ in await stored.conversation(owner, id_) for line in text_.split(b"\n")]
    contents = [json.loads(line)["content"] for line in lines]
    return [content if isinstance(content, str) else content[0]["text"] for content in contents]


async def test_a_turn_begins_with_the_whole_conversation(stored: StoredResponses) -> None:
    *_, last = await chain(stored, 3)
    assert await heard(stored, last) == ["said 0", "answered 0", "said 1", "answered 1", "said 2", "answered 2"]


async def test_a_response_comes_back_as_it_was_and_says_that_it_is_stored(stored: StoredResponses) -> None:
    first, second = await chain(stored, 2)
    found = json.loads(await stored.response(OWNER, second))
    assert (found["id"], found["previous_response_id"], found["store"]) == (second, first, True)
    assert [item["content"] for item in found["output"]] == ["answered 1"]


async def test_the_input_items_are_those_of_all_turns_but_not_the_answer(stored: StoredResponses) -> None:
    first, second = await chain(stored, 2)
    listed = json.loads(await stored.input_items(OWNER, second, Page(order="asc")))
    assert [item["id"] for item in listed["data"]] == [
        f"{first.replace('resp', 'msg')}_i0",
        f"{first.replace('resp', 'msg')}_0",
        f"{second.replace('resp', 'msg')}_i0",
    ]
    with pytest.raises(ApiError, match="There is no item msg_x"):
        await stored.input_items(OWNER, second, Page(after="msg_x"))


async def test_nobody_else_sees_or_removes_it(stored: StoredResponses) -> None:
    (id_,) = await chain(stored, 1)
    for other in OTHERS:
        for attempt in (
            stored.response(other, id_),
            stored.conversation(other, id_),
            stored.input_items(other, id_, Page()),
            stored.remove(other, id_),
        ):
            with pytest.raises(NotStored):
                await attempt
    assert await heard(stored, id_)


async def test_two_turns_may_continue_one_response(stored: StoredResponses) -> None:
    first, second = await chain(stored, 2)
    (third,) = await chain(stored, 1, first)
    assert await heard(stored, third) == ["said 0", "answered 0", "said 0", "answered 0"]
    assert await heard(stored, second) == ["said 0", "answered 0", "said 1", "answered 1"]


async def test_what_continued_a_removed_response_is_there_and_cannot_be_continued(stored: StoredResponses) -> None:
    first, second, third = await chain(stored, 3)
    await stored.remove(OWNER, second)
    with pytest.raises(NotStored):
        await stored.conversation(OWNER, third)
    assert json.loads(await stored.response(OWNER, third))["previous_response_id"] == second
    listed = json.loads(await stored.input_items(OWNER, third, Page()))
    assert [item["content"][0]["text"] for item in listed["data"]] == ["said 2"]
    assert await heard(stored, first)
    for gone in (stored.response(OWNER, second), stored.remove(OWNER, second)):
        with pytest.raises(NotStored):
            await gone


async def test_a_turn_keeps_its_whole_chain_and_no_other(stored: StoredResponses, store_url: str) -> None:
    first, second = await chain(stored, 2)
    (aside,) = await chain(stored, 1, first)
    let_pass(store_url, 20 * DAY)
    before = expiries(store_url)
    (third,) = await chain(stored, 1, second)
    after = expiries(store_url)
    assert after[first] == after[second] == after[third] > before[first]
    assert after[aside] == before[aside]
    let_pass(store_url, 11 * DAY)
    with pytest.raises(NotStored):
        await stored.response(OWNER, aside)
    assert len(await heard(stored, third)) == 6
    let_pass(store_url, KEPT)
    with pytest.raises(NotStored):
        await stored.conversation(OWNER, third)


async def test_a_turn_that_began_in_time_brings_its_chain_back(stored: StoredResponses, store_url: str) -> None:
    (first,) = await chain(stored, 1)
    let_pass(store_url, KEPT + GRACE // 2)
    with connect(store_url) as connection:
        assert not removal.remove_some(connection)
    (second,) = await chain(stored, 1, first)
    assert len(await heard(stored, second)) == 4


async def test_what_is_too_large_is_not_stored(stored: StoredResponses, store_url: str) -> None:
    assert not await stored.keep(record(said="x" * MOST_BYTES))
    assert await stored.keep(record(said="x" * (MOST_BYTES - 1000)))
    assert len(expiries(store_url)) == 1


@pytest.mark.parametrize(("name", "bound"), [("MOST_BYTES", 300), ("MOST_RESPONSES", 3)])
async def test_a_conversation_has_a_bound(
    stored: StoredResponses, monkeypatch: pytest.MonkeyPatch, name: str, bound: int
) -> None:
    first, second, third, fourth = await chain(stored, 4)
    monkeypatch.setattr(chains, name, bound)
    for short in (first, second):
        assert await heard(stored, short)
    with pytest.raises(TooLong):
        await stored.conversation(OWNER, fourth)
    assert await stored.response(OWNER, fourth)
    await stored.remove(OWNER, third)
    with pytest.raises(NotStored):
        await stored.conversation(OWNER, fourth)


async def test_a_response_under_way_is_waited_for(stored: StoredResponses) -> None:
    one = record(announced=True)
    await stored.announce(one.place)
    with pytest.raises(NotStored):
        await stored.conversation(OTHERS[0], one.place.response_id)
    conversation = asyncio.create_task(stored.conversation(OWNER, one.place.response_id))
    response = asyncio.create_task(stored.response(OWNER, one.place.response_id))
    listed = asyncio.create_task(stored.input_items(OWNER, one.place.response_id, Page()))
    await asyncio.sleep(0)
    assert await stored.keep(one)
    assert len(await conversation) == 2
    assert json.loads(await response)["store"] is True
    assert len(json.loads(await listed)["data"]) == 1


async def test_nobody_waits_for_ever(stored: StoredResponses, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "WAIT_SECONDS", 0.1)
    one = record(announced=True)
    await stored.announce(one.place)

    def attempts() -> Iterator[Coroutine[Any, Any, object]]:
        yield stored.conversation(OWNER, one.place.response_id)
        yield stored.response(OWNER, one.place.response_id)
        yield stored.input_items(OWNER, one.place.response_id, Page())

    for attempt in attempts():
        with pytest.raises(StillMade):
            await attempt
    # Whoever made it has died.
    let_pass(store_url, LONGEST)
    for attempt in attempts():
        with pytest.raises(NotStored):
            await attempt


async def test_what_is_withdrawn_was_never_there_and_what_is_stored_stays(
    stored: StoredResponses, store_url: str
) -> None:
    one, other = record(announced=True), record(announced=True)
    await stored.announce(one.place)
    await stored.announce(other.place)
    assert await stored.keep(other)
    await stored.withdraw(one.place.response_id)
    await stored.withdraw(other.place.response_id)
    assert expiries(store_url).keys() == {other.place.response_id}
    assert not await stored.keep(one)


async def test_what_was_deleted_while_it_was_made_stays_away(stored: StoredResponses) -> None:
    one = record(announced=True)
    await stored.announce(one.place)
    await stored.remove(OWNER, one.place.response_id)
    assert not await stored.keep(one)
    with pytest.raises(NotStored):
        await stored.response(OWNER, one.place.response_id)


async def test_to_store_again_changes_nothing(stored: StoredResponses, store_url: str) -> None:
    one = record()
    assert await stored.keep(one)
    before = rows(store_url, "SELECT * FROM stored_responses")
    assert await stored.keep(one)
    assert rows(store_url, "SELECT * FROM stored_responses") == before


@pytest.mark.parametrize("how", ["no answer", "nobody waits"])
async def test_what_is_not_said_to_be_stored_goes_again(store_url: str, how: str) -> None:
    store = Unreliable(store_url)
    stored = StoredResponses(store, MASTERS)
    storing, one = Storing(stored, Patience()), record()
    (first,) = await chain(stored, 1)
    store.held = asyncio.Event()
    store.committed.clear()
    asking = asyncio.create_task(storing.store(asks.Store(one)))
    await store.committed.wait()
    # The store has taken it.
    assert expiries(store_url).keys() == {first, one.place.response_id}
    if how == "no answer":
        store.failing = "after"
        store.held.set()
        assert await asking is False
        store.failing = None
    else:
        asking.cancel()
        store.held.set()
    async with asyncio.timeout(30):
        while expiries(store_url).keys() != {first}:
            await asyncio.sleep(0.01)
    await store.close()


@pytest.mark.parametrize(
    "level", [Level("org_a"), Level("org_a", "support"), Level("org_a", "support", "production")], ids=str
)
async def test_zero_retention_deletes_and_forbids(stored: StoredResponses, store_url: str, level: Level) -> None:
    (id_,) = await chain(stored, 1)
    under_way = record(announced=True)
    await stored.announce(under_way.place)
    elsewhere = record(replace(OWNER, organization="org_b"))
    assert await stored.keep(elsewhere)
    with connect(store_url) as connection:
        assert require(connection, level) == 2
        assert require(connection, level) == 0
    for attempt in (
        stored.check_allowed(OWNER),
        stored.announce(record().place),
        stored.conversation(OWNER, id_),
        stored.conversation(OWNER, "resp_unknown"),
    ):
        with pytest.raises(Forbidden):
            await attempt
    with pytest.raises(NotStored):
        await stored.response(OWNER, id_)
    assert not await stored.keep(under_way)
    assert not await stored.keep(record(previous=id_))
    with connect(store_url) as connection:
        assert not removal.remove_some(connection)
    assert expiries(store_url).keys() == {elsewhere.place.response_id}
    with connect(store_url) as connection:
        assert no_longer_require(connection, level)
        assert not no_longer_require(connection, level)
    assert len(await chain(stored, 1)) == 1


async def test_zero_retention_leaves_other_levels_alone(stored: StoredResponses, store_url: str) -> None:
    with connect(store_url) as connection:
        require(connection, Level("org_a", "support", "staging"))
        require(connection, Level("org_a", "search"))
    assert await stored.keep(record())
    assert not await stored.keep(record(replace(OWNER, project="search")))
    assert not await stored.keep(record(replace(OWNER, environment="staging")))


async def test_of_a_shredded_team_nothing_is_left_and_it_begins_anew(stored: StoredResponses, store_url: str) -> None:
    (id_,) = await chain(stored, 1)
    elsewhere = record(replace(OWNER, organization="org_b"))
    assert await stored.keep(elsewhere)
    (old,) = rows(store_url, "SELECT id FROM stored_keys WHERE organization_id = 'org_a'")
    with connect(store_url) as connection:
        assert shred(connection, "org_a") == 1
        assert shred(connection, "org_a") is None
    with pytest.raises(NotStored):
        await stored.response(OWNER, id_)
    (new,) = await chain(stored, 1, id_)
    with pytest.raises(NotStored):
        await stored.conversation(OWNER, new)
    (fresh,) = await chain(stored, 1)
    assert await heard(stored, fresh)
    assert rows(store_url, "SELECT id FROM stored_keys WHERE organization_id = 'org_a'") != [old]
    assert await stored.response(elsewhere.place.owner, elsewhere.place.response_id)


@pytest.mark.parametrize("before", [0, 1], ids=["its first", "another"])
async def test_a_key_that_is_thrown_away_while_it_is_used_is_replaced(
    stored: StoredResponses, store_url: str, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    await chain(stored, before)
    one, seal = record(), stored._sealed

    def shred_afterwards(*arguments: object, **options: object) -> object:
        sealed = seal(*arguments, **options)  # type: ignore[arg-type]
        if sealed is None:
            return None
        monkeypatch.undo()
        with connect(store_url) as connection:
            shred(connection, "org_a")
        return sealed

    monkeypatch.setattr(stored, "_sealed", shred_afterwards)
    assert await stored.keep(one)
    assert len(await heard(stored, one.place.response_id)) == 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE stored_responses SET organization_id = 'org_b'",
        "UPDATE stored_responses SET environment = 'staging'",
        "UPDATE stored_responses SET previous_id = 'resp_x' WHERE previous_id IS NOT NULL",
    ],
)
async def test_a_row_that_was_changed_behind_our_back_does_not_open(
    stored: StoredResponses, store_url: str, change: str
) -> None:
    *_, last = await chain(stored, 2)
    owner = {"org_b": OTHERS[0], "staging": OTHERS[2]}
    with connect(store_url) as connection:
        connection.execute(text(change))
    mine = next((other for name, other in owner.items() if name in change), OWNER)
    if mine.organization == "org_b":
        # Its data key is another team's.
        with pytest.raises(Exception, match="is not what the master key"):
            await stored.response(mine, last)
        return
    with pytest.raises(SealBroken, match=last):
        await stored.response(mine, last)


async def test_what_has_expired_goes_some_at_a_time(
    stored: StoredResponses, store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MOST_AT_ONCE", 2)
    await chain(stored, 5)
    let_pass(store_url, KEPT + GRACE)
    (new,) = await chain(stored, 1)
    with connect(store_url) as connection:
        assert removal.remove_some(connection)
    assert len(expiries(store_url)) == 4
    monkeypatch.setattr(chores, "_PAUSE_SECONDS", 0.01)
    worker = asyncio.create_task(repeat_forever(store, removal.Expire(), None))
    async with asyncio.timeout(30):
        while expiries(store_url).keys() != {new}:
            await asyncio.sleep(0.01)
    worker.cancel()
    await asyncio.wait((worker,))
    assert rows(store_url, "SELECT response_id FROM stored_contents") == [{"response_id": new}]


async def test_no_more_bytes_go_at_once_than_the_bound(
    stored: StoredResponses, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chain(stored, 3)
    let_pass(store_url, KEPT + GRACE)
    monkeypatch.setattr(removal, "MOST_BYTES_AT_ONCE", 1)
    with connect(store_url) as connection:
        assert removal.remove_some(connection)
    assert len(expiries(store_url)) == 2


def test_one_at_a_time_removes(postgres_url: str) -> None:
    with connect(postgres_url) as one, connect(postgres_url) as other:
        removal.Expire().perform(one, [None])
        assert list(removal.Expire().perform(other, [None])) == [False]


async def test_many_turns_at_once_continue_one_response(store_url: str) -> None:
    stores = [Store(store_url, timeout=30) for _ in range(3)]
    everybody = [StoredResponses(store, MASTERS) for store in stores]
    first, second = await chain(everybody[0], 2)
    turns = [record(previous=(first, second)[number % 2]) for number in range(60)]
    told = await asyncio.gather(*(everybody[number % 3].keep(turn) for number, turn in enumerate(turns)))
    assert all(told)
    assert len(set(expiries(store_url).values()) - {0}) <= 60
    lengths = [len(await everybody[0].conversation(OWNER, turn.place.response_id)) for turn in turns]
    assert lengths == [4, 6] * 30
    for store in stores:
        await store.close()


async def test_the_cost_of_a_turn_grows_with_its_chain_only_and_not_in_statements(
    stored: StoredResponses, store: Store, store_url: str
) -> None:
    statements = list[str]()

    def count(_c: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    for engine in (store._write_engine, store._read_engine):
        event.listen(engine, "before_cursor_execute", count)

    async def turn(previous: str | None) -> tuple[str, list[str]]:
        statements.clear()
        if previous is not None:
            await stored.conversation(OWNER, previous)
        (id_,) = await chain(stored, 1, previous)
        return id_, list(statements)

    id_, _ = await turn(None)
    id_, early = await turn(id_)
    for _ in range(40):
        id_, late = await turn(id_)
    assert late == early
    assert sum("UPDATE stored_responses SET expires_at" in one for one in late) == 1
    assert sum("stored_contents s" in one for one in late) == 1
    sizes = rows(store_url, "SELECT length(input) + length(output) + length(response) AS size FROM stored_contents")
    assert max(row["size"] for row in sizes) < min(row["size"] for row in sizes) + 100


@pytest.fixture
def in_the_files(store_url: str, request: pytest.FixtureRequest) -> Callable[[], list[bytes]]:
    """Gives what is in a store's files and in its journal."""
    file = sqlite_file(store_url)
    if file is not None:
        return lambda: [path.read_bytes() for path in file.parent.glob(f"{file.name}*")]
    server: Postgres = request.getfixturevalue("postgres")
    (database,) = rows(store_url, "SELECT oid FROM pg_database WHERE datname = current_database()")
    begun = time.time()

    def read() -> list[bytes]:
        server.administer("CHECKPOINT")
        journal = [path for path in (server.data / "pg_wal").glob("0*") if path.stat().st_mtime >= begun]
        assert journal
        return [path.read_bytes() for path in (*journal, *(server.data / "base" / str(database["oid"])).iterdir())]

    return read


async def test_nothing_of_a_conversation_can_be_read_in_the_files(
    store_url: str, in_the_files: Callable[[], list[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    store = Store(store_url, timeout=30)
    stored = StoredResponses(store, MASTERS)
    said, answered = "Zanzibar-4711", "Xylophon-0815"
    one = record(said=said, answered=answered)
    assert await stored.keep(one)
    two = record(previous=one.place.response_id, said=said * 500, answered=answered)
    assert await stored.keep(two)
    assert said.encode() in b"".join(await stored.conversation(OWNER, two.place.response_id))
    with pytest.raises(NotStored):
        await stored.response(OTHERS[0], one.place.response_id)
    contents = in_the_files()
    assert len(contents) >= 2, "the store and its journal"
    await store.close()
    contents += in_the_files()
    # The search finds what is there.
    assert any(one.place.response_id.encode() in content for content in contents)
    for content in [*contents, caplog.text.encode()]:
        for secret in (said, answered, said[:8], answered[:8]):
            assert secret.encode() not in content
            assert secret.encode("utf-16-le") not in content
            assert secret.encode().hex().encode() not in content


_KILLED = """
import os, signal, sys
from sidecar.store import connect
from sidecar.stored.keep import Announce
from tests.store.stored_kit import keep, record
one, two = record(announced=True), record()
with connect(sys.argv[1]) as connection:
    Announce().perform(connection, [one.place])
print(one.place.response_id, two.place.response_id, flush=True)
with connect(sys.argv[1]) as connection:
    keep(connection, one, two)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_who_is_killed_while_it_stores_leaves_nothing_half(store_url: str) -> None:
    argv = [sys.executable, "-c", _KILLED, store_url]
    killed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    announced, _ = killed.stdout.split()
    assert rows(store_url, "SELECT id, stored_at FROM stored_responses") == [{"id": announced, "stored_at": None}]
    assert rows(store_url, "SELECT response_id FROM stored_contents") == []
