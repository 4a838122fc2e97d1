"""What a worker remembers of credentials, and for how long: one look-up for many requests, never an old answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from sidecar.identity import directory
from sidecar.identity.directory import Directory
from sidecar.identity.identity import INFERENCE, Identity
from sidecar.identity.known import Known
from sidecar.identity.secret import Kind
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.store import StoreUnavailable


def known(digest: bytes) -> Known:
    identity = Identity(Caller("org_1", digest.hex()), INFERENCE)
    return Known(Kind.KEY, digest, identity, expires_at=None, revoked=False, replaced=False, disabled=False)


class FakeStore:
    """A store in which every digest that begins with K is known; it answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[list[bytes]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.down = False
        self.now = 1000.0

    async def find(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
        self.asked.append(list(digests))
        await self.open.wait()
        if self.down:
            raise StoreUnavailable("down")
        return {digest: known(digest) for digest in digests if digest.startswith(b"K")}

    def directory(self, *, stale: bool = False) -> Directory:
        return Directory(self.find, 3.0, 1.0, stale=stale, clock=lambda: self.now)


@pytest.fixture
async def store() -> FakeStore:
    return FakeStore()


async def asked_twice(store: FakeStore, digest: bytes, seconds: float) -> int:
    """How often the store is asked for two requests that come ``seconds`` apart."""
    of = store.directory()
    assert (await of.get(digest) is not None) is digest.startswith(b"K")
    store.now += seconds
    await of.get(digest)
    return len(store.asked)


@pytest.mark.parametrize(("digest", "seconds"), [(b"K1", 2.9), (b"U1", 0.9)])
async def test_what_was_read_is_remembered(store: FakeStore, digest: bytes, seconds: float) -> None:
    assert await asked_twice(store, digest, seconds) == 1


@pytest.mark.parametrize(("digest", "seconds"), [(b"K1", 3.0), (b"U1", 1.0)])
async def test_and_read_again_in_time(store: FakeStore, digest: bytes, seconds: float) -> None:
    assert await asked_twice(store, digest, seconds) == 2


async def test_what_was_read_counts_from_the_beginning_of_the_reading(store: FakeStore) -> None:
    of = store.directory()
    store.open.clear()
    first = asyncio.create_task(of.get(b"K1"))
    await reading(store, 1)
    store.now += 2.0
    store.open.set()
    await first
    store.now += 1.0
    await of.get(b"K1")
    assert len(store.asked) == 2


async def reading(store: FakeStore, times: int) -> None:
    while len(store.asked) < times:
        await asyncio.sleep(0)


async def test_requests_at_a_time_share_look_ups(store: FakeStore) -> None:
    of = store.directory()
    store.open.clear()
    first = asyncio.create_task(of.get(b"K1"))
    await reading(store, 1)
    others = [asyncio.create_task(of.get(digest)) for digest in [b"K1", b"K2", b"U1", b"K2", b"U1"]]
    await asyncio.sleep(0)
    store.open.set()
    found = await asyncio.gather(first, *others)
    assert [one is not None for one in found] == [True, True, True, False, True, False]
    assert store.asked == [[b"K1"], [b"K2", b"U1"]]


async def test_who_leaves_takes_nothing_from_the_others(store: FakeStore) -> None:
    of = store.directory()
    store.open.clear()
    leaving, staying = (asyncio.create_task(of.get(b"K1")) for _ in range(2))
    await reading(store, 1)
    leaving.cancel()
    await asyncio.sleep(0)
    store.open.set()
    assert await staying is not None
    assert leaving.cancelled()


async def refused(of: Directory, digest: bytes) -> bool:
    try:
        await of.get(digest)
    except ApiError as error:
        assert error.code == "node_unavailable"
        return True
    return False


async def test_a_store_that_is_down_lets_nobody_in(store: FakeStore) -> None:
    of = store.directory()
    await of.get(b"K1")
    store.down = True
    assert not await refused(of, b"K1")
    store.now += 3.0
    assert await refused(of, b"K1")
    assert await refused(of, b"U1")


async def test_a_store_that_is_down_is_not_asked_by_every_request(store: FakeStore) -> None:
    of = store.directory()
    store.down = True
    for digest in (b"K1", b"K2", b"K1"):
        assert await refused(of, digest)
    assert len(store.asked) == 1
    store.down = False
    store.now += 1.0
    assert not await refused(of, b"K1")


async def test_those_who_wait_for_a_store_that_fails_are_told_at_once(store: FakeStore) -> None:
    of = store.directory()
    store.open.clear()
    store.down = True
    first = asyncio.create_task(refused(of, b"K1"))
    await reading(store, 1)
    second = asyncio.create_task(refused(of, b"K2"))
    await asyncio.sleep(0)
    store.open.set()
    assert await first
    assert await second
    assert store.asked == [[b"K1"]]


async def test_who_was_known_goes_on_for_some_time_where_that_is_wanted(store: FakeStore) -> None:
    of = store.directory(stale=True)
    await of.get(b"K1")
    await of.get(b"U1")
    store.down = True
    store.now += directory.STALE_SECONDS - 0.1
    assert not await refused(of, b"K1")
    assert await refused(of, b"U1")
    assert await refused(of, b"K2")
    store.now += 0.1
    assert await refused(of, b"K1")


async def test_a_store_that_hangs_is_not_waited_for_for_ever(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "_WAIT_SECONDS", 0.01)
    of = store.directory()
    store.open.clear()
    assert await refused(of, b"K1")
    store.open.set()


async def test_unknown_credentials_take_bounded_memory(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "MOST_UNKNOWN", 10)
    of = store.directory()
    await of.get(b"K1")
    for index in range(100):
        await of.get(b"U%d" % index)
    asked = len(store.asked)
    await of.get(b"K1")
    await of.get(b"U99")
    assert len(store.asked) == asked
    await of.get(b"U89")
    assert len(store.asked) == asked + 1


async def test_unknown_credentials_take_no_place_from_known_ones(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MOST_WAITING", 3)
    of = store.directory()
    await of.get(b"K1")
    store.now += 3.0
    store.open.clear()
    flood = [asyncio.create_task(refused(of, b"U%d" % index)) for index in range(10)]
    await reading(store, 2)
    honest = asyncio.create_task(refused(of, b"K1"))
    await asyncio.sleep(0)
    store.open.set()
    assert not await honest
    assert sum(await asyncio.gather(*flood)) > 0


async def test_a_fault_of_the_look_up_leaves_nobody_waiting(store: FakeStore) -> None:
    class Faulty(FakeStore):
        async def find(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
            if len(self.asked) == 0:
                self.asked.append(list(digests))
                raise ZeroDivisionError
            return await super().find(digests)

    of = Faulty().directory()
    assert await refused(of, b"K1")
    assert not await refused(of, b"K1")
