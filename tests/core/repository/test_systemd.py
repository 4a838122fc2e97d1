"""The units by systemd itself: each line is known to it, and they are well enclosed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stack.paths import ROOT

UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
IDS = [unit.stem for unit in UNITS]
# Of ten. systemd calls 2 OK and 5 medium.
MOST_EXPOSED = 2.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system with systemd's own units, and programs where ours look for them."""
    units = tmp_path / "usr/lib/systemd/system"
    shutil.copytree("/usr/lib/systemd/system", units, symlinks=True)
    for unit in UNITS:
        shutil.copy(unit, units)
        for line in re.findall(r"^Exec\w+=(/\S+)", unit.read_text(), re.MULTILINE):
            program = tmp_path / line.lstrip("/")
            program.parent.mkdir(parents=True, exist_ok=True)
            program.touch(mode=0o755)
    return tmp_path


def complaints(root: Path, unit: str) -> str:
    """What systemd says of a unit below ``root``."""
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", unit], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=IDS)
def test_systemd_has_no_complaints(root: Path, unit: Path) -> None:
    assert not complaints(root, unit.name)


def test_systemd_complains_of_a_mistake(root: Path) -> None:
    unit = root / "usr/lib/systemd/system" / UNITS[0].name
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHmoe="))
    assert "ProtectHmoe" in complaints(root, unit.name)


@pytest.mark.parametrize("unit", UNITS, ids=IDS)
def test_a_unit_is_enclosed(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) <= MOST_EXPOSED


def test_the_users_of_the_units_are_made() -> None:
    made = set(re.findall(r"^u (\S+) ", (ROOT / "deploy/systemd/responses.sysusers").read_text(), re.MULTILINE))
    used = {user for unit in UNITS for user in re.findall(r"^(?:User|Group)=(\S+)$", unit.read_text(), re.MULTILINE)}
    assert used == made
