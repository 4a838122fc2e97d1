"""Idempotency keys on both engines: a request is answered once, whoever asks again, and whoever dies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from sidecar.admission.beats import Beat, Beats, ForgetWorkers
from sidecar.responses.level import Level
from sidecar.store import Store, connect
from sidecar.stored import idempotency, removal
from sidecar.stored.answers import Answer
from sidecar.stored.claim_rows import REMEMBERED
from sidecar.stored.claims import Claim, Held, Use
from sidecar.stored.idempotency import IdempotencyKeys, Mismatch, NotKept, NotToBeKept, StillRunning
from sidecar.stored.keep import LONGEST
from sidecar.stored.keys import shred
from sidecar.stored.responses import StoredResponses
from sidecar.stored.seals import SealBroken
from sidecar.stored.zero_retention import require
from stack.paths import ROOT
from tests.store.stored_kit import MASTERS, OWNER, record, rows

USE = Use(OWNER, "key_1", "k-1", "POST", "/v1/responses", b'{"input":"Zanzibar"}', "a1")
ANSWER = Answer(200, {"content-type": "application/json"}, b'{"output":"Xylophon"}')
OTHER_ANSWER = Answer(200, {}, b"data: other\n\n")


@pytest.fixture
async def stores(store_url: str) -> AsyncIterator[list[Store]]:
    """The stores of two workers."""
    stores = [Store(store_url, timeout=30) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture
def workers(stores: list[Store]) -> list[IdempotencyKeys]:
    return [IdempotencyKeys(store, MASTERS, f"w{number}", "n1") for number, store in enumerate(stores)]


@pytest.fixture
def keys(workers: list[IdempotencyKeys]) -> IdempotencyKeys:
    return workers[0]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.0)


def again(attempt: str, **changed: Any) -> Use:
    return replace(USE, attempt=attempt, **changed)


async def held(keys: IdempotencyKeys, use: Use = USE) -> tuple[Claim, tuple[str, ...]]:
    """The claim, and whose cost is given back."""
    found = await keys.claim(use)
    assert isinstance(found, tuple)
    claim, holds = found
    assert isinstance(holds, Held)
    return claim, holds.earlier


async def answered(keys: IdempotencyKeys, use: Use = USE, answer: Answer | None = ANSWER) -> None:
    claim, _ = await held(keys, use)
    await keys.keep(claim, answer)


def let_pass(url: str, microseconds: int) -> None:
    with connect(url) as connection:
        connection.execute(text("UPDATE idempotency_keys SET expires_at = expires_at - :t"), {"t": microseconds})


def forget(url: str, worker: str) -> None:
    """As is done when a worker is dead, and all that it had reserved is settled."""
    with connect(url) as connection:
        ForgetWorkers().perform(connection, [worker])


async def test_the_same_request_has_the_same_answer(workers: list[IdempotencyKeys]) -> None:
    await answered(workers[0])
    for number, worker in enumerate(workers):
        assert await worker.claim(again(f"b{number}")) == ANSWER


@pytest.mark.parametrize(
    "other", [{"body": b"{}"}, {"path": "/v1/responses?a=b"}, {"method": "PUT"}], ids=["body", "path", "method"]
)
async def test_another_request_with_the_key_is_refused(keys: IdempotencyKeys, other: dict[str, Any]) -> None:
    claim, _ = await held(keys)
    with pytest.raises(Mismatch):
        await keys.claim(again("b", **other))
    await keys.keep(claim, ANSWER)
    with pytest.raises(Mismatch):
        await keys.claim(again("c", **other))
    assert await keys.claim(again("d")) == ANSWER


@pytest.mark.parametrize(
    "other",
    [
        {"key": "k-2"},
        {"credential": "key_2"},
        {"path": "/v1/responses/compact"},
        {"owner": replace(OWNER, organization="org_b")},
        {"owner": replace(OWNER, project="search")},
        {"owner": replace(OWNER, environment="staging")},
    ],
    ids=str,
)
async def test_a_key_is_of_one_credential_and_endpoint(keys: IdempotencyKeys, other: dict[str, Any]) -> None:
    await answered(keys)
    await answered(keys, again("b", **other), OTHER_ANSWER)
    assert await keys.claim(again("c", **other)) == OTHER_ANSWER
    assert await keys.claim(again("d")) == ANSWER


async def test_one_that_is_running_is_waited_for(workers: list[IdempotencyKeys]) -> None:
    claim, _ = await held(workers[0])
    waiting = [asyncio.create_task(workers[number % 2].claim(again(f"b{number}"))) for number in range(6)]
    await asyncio.wait(waiting, timeout=0.2)
    await workers[0].keep(claim, ANSWER)
    assert await asyncio.gather(*waiting) == [ANSWER] * 6


@pytest.mark.usefixtures("impatient")
async def test_nobody_waits_for_ever(workers: list[IdempotencyKeys]) -> None:
    await held(workers[0])
    with pytest.raises(StillRunning):
        await workers[1].claim(again("b"))


async def test_of_many_at_once_one_holds_the_key_at_a_time(workers: list[IdempotencyKeys]) -> None:
    """Each lets it go but the last, whose answer is that of all who still wait."""
    holders = list[str]()
    at_it = 0

    async def attempt(number: int) -> Answer:
        nonlocal at_it
        keys = workers[number % 2]
        found = await keys.claim(again(f"b{number}"))
        if isinstance(found, Answer):
            return found
        claim, _ = found
        at_it += 1
        assert at_it == 1
        await asyncio.sleep(0)
        holders.append(claim.attempt)
        at_it -= 1
        if len(holders) < 3:
            await keys.let_go(claim, given_back=True)
            return OTHER_ANSWER
        await keys.keep(claim, ANSWER)
        return ANSWER

    told = await asyncio.gather(*(attempt(number) for number in range(12)))
    assert (len(holders), told.count(OTHER_ANSWER), told.count(ANSWER)) == (3, 2, 10)


@pytest.mark.usefixtures("impatient")
async def test_what_is_let_go_is_free_and_its_cost_remembered(workers: list[IdempotencyKeys], store_url: str) -> None:
    claim, _ = await held(workers[0])
    await workers[0].let_go(claim, given_back=False)
    assert rows(store_url, "SELECT id FROM idempotency_keys") == []
    claim, _ = await held(workers[0], again("b"))
    await workers[0].let_go(claim, given_back=True)
    claim, earlier = await held(workers[1], again("c"))
    assert earlier == ("b",)
    await workers[1].let_go(claim, given_back=True)
    _, earlier = await held(workers[0], again("d", body=b"other"))
    assert earlier == (), "another request does not give back what this one cost"


@pytest.mark.usefixtures("impatient")
async def test_the_key_of_a_dead_worker_is_free(workers: list[IdempotencyKeys], store_url: str) -> None:
    claim, _ = await held(workers[0])
    with connect(store_url) as connection:
        Beats().perform(connection, [Beat("w0", "n1", {}), Beat("w1", "n1", {})])
    with pytest.raises(StillRunning):
        await workers[1].claim(again("b"))
    forget(store_url, "w0")
    taken, earlier = await held(workers[1], again("c"))
    assert earlier == ("a1",)
    # It was not dead, and must not answer for the other.
    await workers[0].keep(claim, OTHER_ANSWER)
    await workers[0].let_go(claim, given_back=True)
    with pytest.raises(StillRunning):
        await workers[0].claim(again("d"))
    await workers[1].keep(taken, ANSWER)
    assert await workers[0].claim(again("e")) == ANSWER


@pytest.mark.usefixtures("impatient")
async def test_a_worker_of_which_nothing_has_been_heard_lives(workers: list[IdempotencyKeys], store_url: str) -> None:
    """Its first beat may be late; that it claims a key tells as much."""
    await held(workers[0])
    assert rows(store_url, "SELECT id, node FROM workers") == [{"id": "w0", "node": "n1"}]
    with pytest.raises(StillRunning):
        await workers[1].claim(again("b"))


async def test_a_key_is_remembered_for_a_day(keys: IdempotencyKeys, store_url: str) -> None:
    await answered(keys)
    let_pass(store_url, REMEMBERED - 60_000_000)
    assert await keys.claim(again("b")) == ANSWER
    let_pass(store_url, 60_000_000)
    await answered(keys, again("c", body=b"other"), OTHER_ANSWER)
    assert await keys.claim(again("d", body=b"other")) == OTHER_ANSWER


async def test_what_has_expired_goes(keys: IdempotencyKeys, store_url: str) -> None:
    await answered(keys)
    await answered(keys, again("b", key="k-2"))
    let_pass(store_url, REMEMBERED)
    await answered(keys, again("c", key="k-3"))
    with connect(store_url) as connection:
        assert not removal.remove_some(connection)
    assert len(rows(store_url, "SELECT id FROM idempotency_keys")) == 1
    assert len(rows(store_url, "SELECT id FROM idempotency_answers")) == 1


async def test_one_that_runs_for_too_long_holds_nothing(keys: IdempotencyKeys, store_url: str) -> None:
    await held(keys)
    let_pass(store_url, LONGEST)
    assert (await held(keys, again("b")))[1] == ("a1",)


async def test_that_it_was_answered_is_remembered_where_the_answer_is_not(keys: IdempotencyKeys) -> None:
    await answered(keys, answer=None)
    with pytest.raises(NotKept) as refused:
        await keys.claim(again("b"))
    assert refused.type is NotKept
    with pytest.raises(Mismatch):
        await keys.claim(again("c", body=b"other"))


async def test_under_zero_retention_only_that_it_was_answered_is_kept(keys: IdempotencyKeys, store_url: str) -> None:
    with connect(store_url) as connection:
        require(connection, Level("org_a", "support"))
    await answered(keys)
    assert rows(store_url, "SELECT id FROM idempotency_answers") == []
    with pytest.raises(NotToBeKept):
        await keys.claim(again("b"))


async def test_zero_retention_deletes_what_is_kept_below_its_level(keys: IdempotencyKeys, store_url: str) -> None:
    await answered(keys)
    elsewhere = again("b", owner=replace(OWNER, project="search"))
    await answered(keys, elsewhere)
    running, _ = await held(keys, again("c", key="k-2"))
    with connect(store_url) as connection:
        require(connection, Level("org_a", "support"))
        assert not removal.remove_some(connection)
    assert len(rows(store_url, "SELECT id FROM idempotency_answers")) == 1
    assert await keys.claim(replace(elsewhere, attempt="d")) == ANSWER
    await keys.keep(running, ANSWER)
    with pytest.raises(NotToBeKept):
        await keys.claim(again("e", key="k-2"))
    assert len(rows(store_url, "SELECT id FROM idempotency_answers")) == 1


async def test_of_a_shredded_team_no_answer_can_be_read(keys: IdempotencyKeys, store_url: str) -> None:
    await answered(keys)
    running, _ = await held(keys, again("b", key="k-2"))
    with connect(store_url) as connection:
        shred(connection, "org_a")
    await answered(keys, again("c"), OTHER_ANSWER)
    assert await keys.claim(again("d")) == OTHER_ANSWER
    await keys.keep(running, ANSWER)
    await held(keys, again("e", key="k-2"))


async def test_of_a_deleted_response_no_answer_is_given_again(
    keys: IdempotencyKeys, stores: list[Store], store_url: str
) -> None:
    stored = StoredResponses(stores[0], MASTERS)
    for key, before in (("k-1", True), ("k-2", False)):
        response = record()
        assert await stored.keep(response)
        id_ = response.place.response_id
        claim, _ = await held(keys, again(id_.removeprefix("resp_"), key=key))
        if before:
            await keys.keep(claim, ANSWER)
        await stored.remove(OWNER, id_)
        await keys.keep(claim, ANSWER)
        with pytest.raises(NotKept):
            await keys.claim(again("b", key=key))
    assert rows(store_url, "SELECT id FROM idempotency_answers") == []


async def test_to_keep_or_claim_again_changes_nothing(keys: IdempotencyKeys, store_url: str) -> None:
    claim, _ = await held(keys)
    assert await held(keys) == (claim, ())
    await keys.keep(claim, ANSWER)
    before = rows(store_url, "SELECT * FROM idempotency_keys")
    await asyncio.gather(keys.keep(claim, OTHER_ANSWER), keys.keep(claim, None), keys.let_go(claim, given_back=True))
    assert rows(store_url, "SELECT * FROM idempotency_keys") == before
    assert await keys.claim(again("b")) == ANSWER


@pytest.mark.usefixtures("impatient")
async def test_who_no_longer_waits_holds_nothing(keys: IdempotencyKeys) -> None:
    claim, _ = await held(keys)
    await keys.give_up(again("b"))
    with pytest.raises(StillRunning):
        await keys.claim(again("c"))
    await keys.give_up(USE)
    await held(keys, again("d"))
    assert claim.attempt == "a1"


async def test_an_answer_that_was_changed_or_moved_does_not_open(keys: IdempotencyKeys, store_url: str) -> None:
    await answered(keys)
    await answered(keys, again("b", key="k-2"), OTHER_ANSWER)
    one, other = rows(store_url, "SELECT id, answer FROM idempotency_answers")
    for id_, answer in ((one["id"], other["answer"]), (other["id"], b"\x01" * 40)):
        with connect(store_url) as connection:
            change = text("UPDATE idempotency_answers SET answer = :answer WHERE id = :id")
            connection.execute(change, {"id": id_, "answer": answer})
    for key in ("k-1", "k-2"):
        with pytest.raises(SealBroken):
            await keys.claim(again("c", key=key))


def files_of(url: str) -> list[bytes]:
    """What is in a SQLite store's file and those beside it."""
    file = Path(url.removeprefix("sqlite:///"))
    return [path.read_bytes() for path in file.parent.glob(f"{file.name}*")]


async def test_nothing_of_a_request_can_be_read_in_the_files(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    store = Store(sqlite_url)
    keys = IdempotencyKeys(store, MASTERS, "w0", "n1")
    use = replace(USE, key="order-of-Ada-4711")
    await answered(keys, use)
    await held(keys, replace(use, key="order-of-Bob", attempt="b"))
    contents = files_of(sqlite_url)
    assert len(contents) >= 2, "the store and its journal"
    await store.close()
    contents += files_of(sqlite_url)
    # The search finds what is there.
    assert any(b"production" in content for content in contents)
    for content in [*contents, caplog.text.encode()]:
        for secret in (b"Zanzibar", b"Xylophon", b"order-of"):
            assert secret not in content
            assert secret.hex().encode() not in content


_KILLED = """
import asyncio, os, signal, sys
from sidecar.store import Store
from sidecar.stored.idempotency import IdempotencyKeys
from tests.store.stored_kit import MASTERS
from tests.store.test_idempotency import USE
async def main():
    await IdempotencyKeys(Store(sys.argv[1]), MASTERS, "w-killed", "n1").claim(USE)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.usefixtures("impatient")
async def test_who_is_killed_holds_a_key_until_it_is_known_to_be_dead(keys: IdempotencyKeys, store_url: str) -> None:
    argv = [sys.executable, "-c", _KILLED, store_url]
    killed = await asyncio.to_thread(subprocess.run, argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with pytest.raises(StillRunning):
        await keys.claim(again("b"))
    forget(store_url, "w-killed")
    assert (await held(keys, again("c")))[1] == ("a1",)
