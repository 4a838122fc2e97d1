"""What workers tell each other of the models by files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sidecar.server.signs import Sign, Signs


def test_what_one_hears_counts_for_all(tmp_path: Path) -> None:
    first, second = Signs(tmp_path, 0, since=10.0), Signs(tmp_path, 1, since=10.0)
    first.failed("m", 11.0, "timeout", hangs=True)
    first.share(12.0)
    second.share(12.0)
    assert second["m"] == Sign(failed_at=11.0, failure="timeout", hangs=True)
    assert second["m"].fails
    second.heard("m", 13.0)
    assert not second["m"].fails
    second.share(14.0)
    assert first["m"].fails
    first.share(14.0)
    assert not first["m"].fails
    assert first["other"] == Sign()


def test_the_latest_failure_is_the_one_that_counts(tmp_path: Path) -> None:
    first, second = Signs(tmp_path, 0, since=10.0), Signs(tmp_path, 1, since=10.0)
    first.failed("m", 11.0, "timeout", hangs=True)
    second.failed("m", 12.0, "unreachable", hangs=False)
    for signs in (first, second, first):
        signs.share(13.0)
    assert first["m"] == second["m"] == Sign(failed_at=12.0, failure="unreachable")


def test_times_never_go_back(tmp_path: Path) -> None:
    signs = Signs(tmp_path, 0, since=10.0)
    for at in (12.0, 11.0):
        signs.heard("m", at)
    assert signs["m"].heard_at == 12.0


def test_an_earlier_life_of_the_node_or_the_machine_is_nothing(tmp_path: Path) -> None:
    earlier, rebooted = Signs(tmp_path, 1, since=0.0), Signs(tmp_path, 2, since=0.0)
    earlier.heard("m", 9.0)
    rebooted.heard("m", 1000.0)
    (tmp_path / "worker-3.json").write_text('{"m": {"of another release": 1}}')
    for signs in (earlier, rebooted):
        signs.share(0.0)
    signs = Signs(tmp_path, 0, since=10.0)
    signs.share(20.0)
    assert signs["m"] == Sign()


_CLAIM = """
import sys
from pathlib import Path
from sidecar.server.signs import Signs
signs = Signs(Path(sys.argv[1]), 1, since=0.0)
print(signs.claim("m"), signs.claim("other"))
"""


def test_one_worker_at_a_time_asks_a_model(tmp_path: Path) -> None:
    def claimed_elsewhere() -> str:
        return subprocess.check_output([sys.executable, "-c", _CLAIM, tmp_path], text=True).strip()

    signs = Signs(tmp_path, 0, since=0.0)
    assert signs.claim("m")
    assert claimed_elsewhere() == "False True"
    signs.release("m")
    # What a process holds ends with it.
    assert claimed_elsewhere() == claimed_elsewhere() == "True True"
    assert signs.claim("m")
    signs.close()
    assert claimed_elsewhere() == "True True"
