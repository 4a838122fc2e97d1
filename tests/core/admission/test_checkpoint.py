"""The checkpoint file: what is stored in it is found by others, to the last store, whenever its process is killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sidecar.admission import checkpoint
from sidecar.admission.checkpoint import Checkpoint, CheckpointFull, DeadCheckpoint, claim_dead
from sidecar.admission.entries import Settlement
from sidecar.admission.slots import SLOT_BYTES, Left, Slot, read_slot
from sidecar.responses.marks import Counts, mark_of

TOKENS = st.integers(0, 2**31 - 1)
BIG = st.integers(0, 2**63 - 1)
IDS = st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=1, max_size=32)
SETTLEMENTS = st.builds(
    Settlement,
    IDS,
    st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=64),
    st.booleans(),
    *[BIG] * 6,
    image_bytes=st.none() | BIG,
    first_token_ms=st.none() | BIG,
    total_ms=BIG,
    searches=BIG,
)


@contextmanager
def dead(directory: Path) -> Iterator[list[DeadCheckpoint]]:
    found = list(claim_dead(directory))
    yield found
    for one in found:
        one.release()


def left_in(directory: Path) -> list[Left]:
    with dead(directory) as files:
        return [left for file in files for left in file.left]


def slot(id: str = "r1", input_tokens: int = 7) -> tuple[Slot, bytearray]:
    memory = bytearray(os.urandom(SLOT_BYTES))
    return Slot(memoryview(memory), id, input_tokens), memory


@given(SETTLEMENTS)
def test_a_settlement_is_found_as_it_was_made_out(settlement: Settlement) -> None:
    used, memory = slot(settlement.id)
    used.finish(settlement)
    found = read_slot(bytes(memory))
    assert found is not None
    assert found.settlement("worker_lost") == settlement


@given(IDS, TOKENS, st.lists(st.tuples(TOKENS, TOKENS)))
def test_an_open_slot_tells_the_last_mark(id: str, input_tokens: int, marks: list[tuple[int, int]]) -> None:
    used, memory = slot(id, input_tokens)
    for output, reasoning in marks:
        used.mark[0] = mark_of(output, reasoning)
    found = read_slot(bytes(memory))
    last = Counts(True, *marks[-1]) if marks else Counts(False, 0, 0)
    assert found == Left(id, last, input_tokens, 0, False, False, None)


def test_what_a_slot_held_before_does_not_show_in_its_next_use() -> None:
    used, memory = slot("r1")
    used.mark[0] = mark_of(9, 9)
    used.note(input_tokens=8, cached_tokens=4, guided=True)
    used.note_spooled()
    used.finish(Settlement("r1", "completed", begun=True, output_tokens=9))
    assert Slot(used.free(), "r2", 3).read() == Left("r2", Counts(False, 0, 0), 3, 0, False, False, None)
    assert read_slot(bytes(memory)) is not None


def test_a_free_slot_holds_nothing() -> None:
    used, memory = slot()
    used.free()
    assert read_slot(bytes(memory)) is None
    assert read_slot(bytes(SLOT_BYTES)) is None


@pytest.mark.parametrize("id", ["", "x" * 33, "é"])
def test_an_id_that_does_not_fit_is_refused(id: str) -> None:
    with pytest.raises(ValueError):
        slot(id)


class Recorder:
    """Memory that keeps each state it was in: what a kill may leave."""

    def __init__(self, memory: bytearray) -> None:
        self.memory = memory
        self.states: list[bytes] = []

    def trace(self, frame: object, event: str, argument: object) -> object:
        self.states.append(bytes(self.memory))
        return self.trace


@given(SETTLEMENTS, IDS, TOKENS)
def test_wherever_a_kill_comes_a_slot_is_never_misread(before: Settlement, id: str, output: int) -> None:
    """Each line is where a kill may come. What is found then was true at that moment, or is nothing."""
    memory = bytearray(SLOT_BYTES)
    old = Slot(memoryview(memory), before.id, 5)
    recorder = Recorder(memory)
    tracer = sys.gettrace()
    sys.settrace(recorder.trace)  # type: ignore[arg-type]
    try:
        old.finish(before)
        used = Slot(old.free(), id, 6)
        used.mark[0] = mark_of(output, 0)
        used.finish(Settlement(id, "completed", begun=True, output_tokens=output))
    finally:
        sys.settrace(tracer)
    # A store of more than 8 bytes may be cut: every prefix of what changed from one state to the next is possible.
    for state in recorder.states:
        found = read_slot(state)
        if found is not None:
            assert found.id in (before.id, id)
            if found.id == before.id and found.id != id:
                assert found.end in (None, before)
            elif found.id != before.id:
                assert found.delivered.output_tokens in (0, output)
                assert found.end is None or found.end.output_tokens == output
    assert len(recorder.states) > 5


def test_a_file_belongs_to_its_worker_while_that_lives(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "state", "w1")
    file.take("r1", 5)
    with dead(tmp_path / "state") as found:
        assert found == []
    file.close()
    with dead(tmp_path / "state") as found:
        assert [(one.incarnation, [left.id for left in one.left]) for one in found] == [("w1", ["r1"])]


def test_a_file_has_one_finder_at_a_time(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path, "w1")
    file.take("r1", 5)
    file.close()
    with dead(tmp_path) as first, dead(tmp_path) as second:
        assert (len(first), second) == (1, [])
    assert [left.id for left in left_in(tmp_path)] == ["r1"]


def test_what_was_settled_leaves_no_file(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path, "w1")
    file.free(file.take("r1", 5))
    file.close()
    assert list(tmp_path.glob("*")) == []


def test_a_removed_file_is_gone_for_all(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path, "w1")
    file.take("r1", 5)
    file.close()
    (found,) = claim_dead(tmp_path)
    found.remove()
    assert list(claim_dead(tmp_path)) == []


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        file = Checkpoint(tmp_path / "state", "w1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    file.close()


def test_a_file_of_an_earlier_boot_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Checkpoint(tmp_path, "w1")
    file.take("r1", 5).mark[0] = mark_of(3, 0)
    file.close()
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr(checkpoint, "_BOOT_ID", boot)
    with dead(tmp_path) as (found,):
        assert (found.incarnation, found.current, found.left) == ("w1", False, [])


def test_it_grows_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_MOST_SEGMENTS", 2)
    file = Checkpoint(tmp_path, "w1")
    slots = [file.take(f"r{number}", number) for number in range(512)]
    with pytest.raises(CheckpointFull, match="512 reservations are open"):
        file.take("r512", 0)
    file.free(slots[7])
    file.take("r513", 513)
    file.close()
    assert {left.id: left.input_tokens for left in left_in(tmp_path)} == {
        f"r{number}": number for number in range(514) if number not in (7, 512)
    }


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = Checkpoint(tmp_path, "w1")
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(CheckpointFull, match="No space left on device"):
        file.take("r1", 5)
    file.close()


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "MOST_FILES", 2)
    for name in ("w1", "w2"):
        file = Checkpoint(tmp_path, name)
        file.take("r1", 5)
        file.close()
    with pytest.raises(OSError, match="2 checkpoint files"):
        Checkpoint(tmp_path, "w3")


def test_a_directory_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert list(claim_dead(tmp_path / "state")) == []


_WORKER = """
import sys
from pathlib import Path
from sidecar.admission.checkpoint import Checkpoint
from sidecar.responses.marks import mark_of
file = Checkpoint(Path(sys.argv[1]), "w1")
cells = [file.take(f"r{number}", number).mark for number in range(300)]
for cell in cells:
    cell[0] = mark_of(1, 0)
print("on", flush=True)
tokens = 1
while True:
    tokens += 1
    for cell in cells:
        cell[0] = mark_of(tokens, tokens // 2)
"""


@pytest.mark.parametrize("_round", range(3))
def test_a_worker_killed_in_mid_stream_leaves_every_store_that_it_made(tmp_path: Path, _round: int) -> None:
    with subprocess.Popen([sys.executable, "-c", _WORKER, tmp_path], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"on\n"
        with dead(tmp_path) as found:
            assert found == []
        worker.send_signal(signal.SIGKILL)
    left = {one.input_tokens: one for one in left_in(tmp_path)}
    counts = [left[number].delivered for number in range(300)]
    assert [one.reasoning_tokens for one in counts] == [
        one.output_tokens // 2 if one.output_tokens > 1 else 0 for one in counts
    ]
    # It wrote them in turn: a kill stands between two of them.
    turns = [one.output_tokens for one in counts]
    assert turns == sorted(turns, reverse=True)
    assert turns[0] - turns[-1] <= 1


class Workers(RuleBasedStateMachine):
    """Any order of takes, marks, ends and frees: others find just what is in use."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = bytearray(8 * SLOT_BYTES)
        view = memoryview(self.memory)
        self.free = [view[start : start + SLOT_BYTES] for start in range(0, len(view), SLOT_BYTES)]
        self.used: dict[str, tuple[Slot, Left]] = {}
        self.number = 0

    @precondition(lambda self: self.free)
    @rule(input_tokens=TOKENS)
    def take(self, input_tokens: int) -> None:
        self.number += 1
        id = f"r{self.number}"
        left = Left(id, Counts(False, 0, 0), input_tokens, 0, False, False, None)
        self.used[id] = (Slot(self.free.pop(0), id, input_tokens), left)

    @precondition(lambda self: self.used)
    @rule(output=TOKENS, reasoning=TOKENS, data=st.data())
    def mark(self, output: int, reasoning: int, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.used)))
        used, left = self.used[id]
        used.mark[0] = mark_of(output, reasoning)
        counts = Counts(True, output, reasoning)
        self.used[id] = (used, Left(id, counts, left.input_tokens, 0, False, False, left.end))

    @precondition(lambda self: self.used)
    @rule(settlement=SETTLEMENTS, data=st.data())
    def finish(self, settlement: Settlement, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.used)))
        used, left = self.used[id]
        used.finish(settlement)
        found = used.read().end
        assert found is not None
        assert (found.outcome, found.total_ms) == (settlement.outcome, settlement.total_ms)
        self.used[id] = (used, Left(id, left.delivered, left.input_tokens, 0, False, False, found))

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        used, _ = self.used.pop(data.draw(st.sampled_from(sorted(self.used))))
        self.free.append(used.free())

    @invariant()
    def others_find_what_is_in_use(self) -> None:
        slots = [bytes(self.memory[at : at + SLOT_BYTES]) for at in range(0, len(self.memory), SLOT_BYTES)]
        found = [left for left in map(read_slot, slots) if left is not None]
        assert sorted(found, key=lambda left: left.id) == sorted(
            (left for _, left in self.used.values()), key=lambda left: left.id
        )


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=40, stateful_step_count=15)
