"""What the dead have left is settled by others, once, and to the last token that was handed over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.admission import checkpoint
from sidecar.admission.bookkeeper import Bookkeeper, Reserved
from sidecar.admission.checkpoint import Checkpoint
from sidecar.admission.entries import ReservationRequest, Settlement
from sidecar.admission.limits import Limits
from sidecar.admission.recovery import Recovery
from sidecar.responses.marks import mark_of
from sidecar.store import StoreUnavailable
from tests.store.ledger_kit import PRICE, PRICED, Books, completed, ledger, request
from tests.store.unreliable import Unreliable

LIMITS = Limits(concurrent_requests=100, tokens_per_minute=10_000, period="month", period_tokens=10_000)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Node:
    """A node's workers, by name, on one store."""

    def __init__(self, url: str, state: Path) -> None:
        self.store, self.state, self.clock = Unreliable(url), state, Clock()
        self.books = Books(url, LIMITS, PRICED)
        self.ledger = ledger(LIMITS, PRICED)
        self.checkpoints: dict[str, Checkpoint] = {}

    def start(self, name: str) -> tuple[Bookkeeper, Recovery]:
        file = self.checkpoints[name] = Checkpoint(self.state, name)
        bookkeeper = Bookkeeper(self.store, self.ledger, file)
        return bookkeeper, Recovery(self.store, self.ledger, file, "n1", clock=self.clock)

    def die(self, name: str) -> None:
        """What a kill does: nothing more is written, and the lock is let go."""
        self.checkpoints[name].close()

    async def reserve(self, bookkeeper: Bookkeeper, worker: str, **changed: Any) -> tuple[ReservationRequest, Reserved]:
        asked = request(worker=worker, **changed)
        reserved = await bookkeeper.reserve(asked)
        assert isinstance(reserved, Reserved)
        return asked, reserved

    def billed(self) -> dict[str, tuple[int, int, int, str]]:
        """By reservation: input and output tokens, price, and the outcome."""
        return {
            row["id"]: (row["input_tokens"], row["output_tokens"], row["price"], row["outcome"])
            for row in self.books.records()
        }


@pytest.fixture
def node(store_url: str, tmp_path: Path) -> Iterator[Node]:
    yield Node(store_url, tmp_path / "state")


async def test_a_dead_workers_answers_are_settled_to_the_last_token(node: Node) -> None:
    dying, _ = node.start("dead")
    streaming, first = await node.reserve(dying, "dead")
    silent, _ = await node.reserve(dying, "dead")
    ended, third = await node.reserve(dying, "dead")
    first.slot.mark[0] = mark_of(5, 2)
    third.slot.finish(completed(ended.id, output_tokens=7))
    node.die("dead")
    _, recovery = node.start("alive")
    await recovery.settle_dead()
    assert node.billed() == {
        streaming.id: (10, 5, PRICE.of(10, 0, 5), "worker_lost"),
        silent.id: (0, 0, 0, "worker_lost"),
        ended.id: (10, 7, PRICE.of(10, 0, 7), "completed"),
    }
    assert node.books.open() == 0
    assert (node.books.level("concurrent", "*"), node.books.level("quota", "*")) == (0, 32)
    assert [path.stem for path in node.state.glob("*.slots")] == ["alive"]


async def test_a_living_workers_answers_are_left_alone(node: Node) -> None:
    living, _ = node.start("living")
    await node.reserve(living, "living")
    _, recovery = node.start("other")
    await recovery.settle_dead()
    assert node.books.open() == 1


async def test_what_was_settled_before_the_death_is_not_settled_again(node: Node) -> None:
    dying, _ = node.start("dead")
    asked, reserved = await node.reserve(dying, "dead")
    node.store.failing = "after"
    with pytest.raises(StoreUnavailable):
        await node.store.run(node.ledger, completed(asked.id, output_tokens=7))
    reserved.slot.finish(completed(asked.id, output_tokens=7))
    node.store.failing = None
    node.die("dead")
    _, recovery = node.start("alive")
    await recovery.settle_dead()
    assert node.billed() == {asked.id: (10, 7, PRICE.of(10, 0, 7), "completed")}


async def test_a_slot_whose_reservation_was_never_made_keeps_it_from_being_made(node: Node) -> None:
    file = Checkpoint(node.state, "dead")
    asked = request(worker="dead")
    file.take(asked.id, 10)
    file.close()
    _, recovery = node.start("alive")
    await recovery.settle_dead()
    with pytest.raises(Exception, match="given up"):
        node.books.book(asked)
    assert (node.books.open(), node.billed()) == (0, {})


async def test_a_reservation_without_a_slot_is_given_back(node: Node) -> None:
    node.books.admit(worker="dead")
    file = Checkpoint(node.state, "dead")
    file.take("other", 10)
    file.close()
    _, recovery = node.start("alive")
    await recovery.settle_dead()
    assert node.books.open() == 0
    assert [record["price"] for record in node.books.records()] == [0]


async def test_what_cannot_be_settled_stays_until_it_can(node: Node) -> None:
    dying, _ = node.start("dead")
    _, reserved = await node.reserve(dying, "dead")
    reserved.slot.mark[0] = mark_of(5, 0)
    node.die("dead")
    _, recovery = node.start("alive")
    for failing in ("before", "after"):
        node.store.failing = failing
        with pytest.raises(StoreUnavailable):
            await recovery.settle_dead()
        assert len(list(node.state.glob("*.slots"))) == 2
    node.store.failing = None
    await recovery.settle_dead()
    assert [row[1] for row in node.billed().values()] == [5]
    assert [path.stem for path in node.state.glob("*.slots")] == ["alive"]


async def test_after_a_boot_the_last_beat_tells_how_far_answers_had_come(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying, beating = node.start("dead")
    asked, reserved = await node.reserve(dying, "dead")
    reserved.slot.mark[0] = mark_of(5, 2)
    await beating.beat()
    reserved.slot.mark[0] = mark_of(9, 2)
    node.die("dead")
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr(checkpoint, "_BOOT_ID", boot)
    _, recovery = node.start("alive")
    await recovery.settle_dead()
    assert node.billed() == {asked.id: (10, 5, PRICE.of(10, 0, 5), "worker_lost")}


class Mesh(Node):
    """Two machines that share nothing but the store."""

    def __init__(self, url: str, tmp_path: Path) -> None:
        super().__init__(url, tmp_path / "here")
        self.lost = Node(url, tmp_path / "there")


@pytest.fixture
def mesh(store_url: str, tmp_path: Path) -> Iterator[Mesh]:
    yield Mesh(store_url, tmp_path)


async def watch(mesh: Mesh, recovery: Recovery, seconds: int, beating: Recovery | None = None) -> None:
    """Let ``seconds`` pass on this machine, in looks of 5 seconds."""
    for _ in range(seconds // 5):
        mesh.clock.now += 5
        await recovery.beat()
        if beating is not None:
            await beating.beat()
        await recovery.settle_lost()


async def test_a_lost_machine_is_settled_after_a_minute_by_its_last_beat(mesh: Mesh) -> None:
    serving, beating = mesh.lost.start("far")
    asked, reserved = await mesh.lost.reserve(serving, "far")
    reserved.slot.mark[0] = mark_of(5, 0)
    await beating.beat()
    reserved.slot.mark[0] = mark_of(9, 0)
    _, recovery = mesh.start("near")
    await recovery.settle_lost()
    await watch(mesh, recovery, 55)
    assert mesh.books.open() == 1
    await watch(mesh, recovery, 5)
    assert mesh.billed() == {asked.id: (10, 5, PRICE.of(10, 0, 5), "node_lost")}
    assert [row["id"] for row in mesh.books.rows("workers")] == ["near"]
    # It was not lost, it could not be heard: what it settles corrects what was settled in its place.
    await serving.settle(reserved.slot, completed(asked.id, output_tokens=12))
    billed = mesh.billed()
    assert sum(row[1] for row in billed.values()) == 12
    assert sum(row[2] for row in billed.values()) == PRICE.of(10, 0, 12)
    assert set(billed) == {asked.id, f"{asked.id}-correction"}


async def test_a_machine_that_dies_before_its_first_beat_is_settled_too(mesh: Mesh) -> None:
    serving, _ = mesh.lost.start("far")
    await mesh.lost.reserve(serving, "far")
    _, recovery = mesh.start("near")
    await recovery.settle_lost()
    await watch(mesh, recovery, 60)
    assert mesh.books.open() == 0


async def test_a_machine_that_beats_is_left_alone(mesh: Mesh) -> None:
    serving, beating = mesh.lost.start("far")
    await mesh.lost.reserve(serving, "far")
    _, recovery = mesh.start("near")
    await watch(mesh, recovery, 300, beating)
    assert mesh.books.open() == 1


async def test_an_outage_of_the_store_makes_nobody_look_dead(mesh: Mesh) -> None:
    serving, beating = mesh.lost.start("far")
    await mesh.lost.reserve(serving, "far")
    await beating.beat()
    _, recovery = mesh.start("near")
    await watch(mesh, recovery, 30)

    def unreachable(*_: object) -> object:
        raise StoreUnavailable("told to fail")

    reading, mesh.store.read = mesh.store.read, unreachable  # type: ignore[method-assign, assignment]
    mesh.clock.now += 5
    with pytest.raises(StoreUnavailable):
        await recovery.settle_lost()
    mesh.store.read = reading  # type: ignore[method-assign]
    await watch(mesh, recovery, 55)
    await beating.beat()
    await watch(mesh, recovery, 55)
    assert mesh.books.open() == 1


async def test_a_worker_that_ends_well_is_forgotten(node: Node) -> None:
    bookkeeper, recovery = node.start("w1")
    await recovery.beat()
    assert [row["beats"] for row in node.books.rows("workers")] == [1]
    await recovery.beat()
    assert [(row["id"], row["node"], row["beats"]) for row in node.books.rows("workers")] == [("w1", "n1", 2)]
    await bookkeeper.close()
    await recovery.leave()
    assert node.books.rows("workers") == []


async def test_a_settled_reservation_is_not_touched_by_a_beat(node: Node) -> None:
    bookkeeper, recovery = node.start("w1")
    asked, reserved = await node.reserve(bookkeeper, "w1")
    reserved.slot.mark[0] = mark_of(5, 0)
    node.books.book(Settlement(asked.id, "completed", begun=False))
    await recovery.beat()
    assert [row["delivered_output"] for row in node.books.rows("reservations")] == [0]
