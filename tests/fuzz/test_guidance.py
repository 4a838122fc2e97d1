"""A few seconds of fuzzing guidance; ``tests/fuzz/guidance.py`` runs for as long as one likes."""

import subprocess
import sys

import pytest

from stack.paths import ROOT

GUARDED = """
import socket, sys, urllib.request
from tests.fuzz.guidance import GUARD
sys.addaudithook(GUARD)
GUARD.armed = True
{deed}
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_fuzzing_finds_no_fault() -> None:
    # A fixed seed: a commit must not fail by chance.
    options = ["-runs=5000", "-max_total_time=10", "-max_len=400", "-len_control=0", "-seed=1"]
    ended = run("-m", "tests.fuzz.guidance", *options)
    assert ended.returncode == 0, ended.stderr[-4000:]


@pytest.mark.parametrize(
    "deed", ["open('/etc/hostname')", "socket.getaddrinfo('x', 1)", "urllib.request.urlopen('file:///etc/hostname')"]
)
def test_the_guard_sees_what_is_opened(deed: str) -> None:
    ended = run("-c", GUARDED.format(deed=deed))
    assert "AssertionError" in ended.stderr
