"""``responses-sidecar health``, as containers ask it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from stack.local import LocalStack
from stack.paths import ROOT


def health(path: Path, option: str = "--config") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sidecar", "health", option, str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_a_node_that_serves_is_well(stack: LocalStack) -> None:
    for path, option in ((stack.sidecar.config, "--config"), (stack.sidecar.worker_sockets[0].parent, "--sockets")):
        asked = health(path, option)
        assert (asked.returncode, asked.stdout) == (0, "2 of 2 workers serve\n")


def test_a_node_that_does_not_run_is_not(stack: LocalStack, tmp_path: Path) -> None:
    config = yaml.safe_load(stack.sidecar.config.read_text())
    other = tmp_path / "sidecar.yaml"
    other.write_text(yaml.safe_dump({**config, "sockets": str(tmp_path)}))
    asked = health(other)
    assert (asked.returncode, asked.stdout) == (1, "0 of 2 workers serve\n")
    nobody = health(tmp_path, "--sockets")
    assert (nobody.returncode, nobody.stdout) == (1, "0 of 0 workers serve\n")


def test_a_configuration_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    assert health(tmp_path / "none.yaml").returncode == 2
