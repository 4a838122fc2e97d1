"""A few seconds of search for inputs that cost too much; ``tests/fuzz/slow`` searches for as long as one likes."""

import subprocess
import sys

import pytest

from stack.paths import ROOT


@pytest.mark.parametrize(
    ("target", "inputs"), [("schemas", 40), ("prompts", 100), ("generations", 60), ("images", 200)]
)
def test_a_search_for_slow_inputs_finds_none(target: str, inputs: int) -> None:
    # A fixed seed: a commit must not fail by chance.
    command = [sys.executable, "-m", "tests.fuzz.slow", target, "--inputs", str(inputs), "--seed", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{ended.returncode}: {ended.stdout[-4000:]} {ended.stderr[-4000:]}"
    assert int(ended.stdout.splitlines()[-1].split()[0]) >= inputs / 2
