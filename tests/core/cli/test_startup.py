"""A command imports what it needs: a supervisor is small, and Triton's client is for tests alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stack.paths import ROOT

SERVING = {"aiohttp", "envoy", "PIL"}
ASKING = {"grpc", "google", "jinja2", "tokenizers"}
DECIDING = {"llguidance"}
CHECKING = {"jsonschema"}
"""What only the check of an endpoint needs, once it has one."""


def imported(command: str) -> set[str]:
    """The top-level packages that a command imports before it finds that it has no configuration."""
    arguments = ["-X", "importtime", "-m", "sidecar", *command.split(), "--config", "missing.yaml"]
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    times = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in times}


@pytest.mark.parametrize(
    ("command", "needed", "needless"),
    [
        ("serve", {"yaml"}, SERVING | ASKING | DECIDING | CHECKING),
        ("check", ASKING, SERVING | DECIDING),
        ("worker --index 0 --place 0", SERVING | ASKING | DECIDING, CHECKING),
    ],
)
def test_a_command_imports_what_it_needs(command: str, needed: set[str], needless: set[str]) -> None:
    found = imported(command)
    assert found >= needed
    assert not found & (needless | {"tritonclient"})
