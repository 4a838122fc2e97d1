"""A few seconds of fuzzing both ends of a gRPC connection; ``tests/fuzz/http2.py`` runs for as long as one likes."""

import subprocess
import sys

from stack.paths import ROOT


def test_fuzzing_finds_no_fault() -> None:
    # A fixed seed: a commit must not fail by chance.
    options = ["-runs=20000", "-max_total_time=10", "-max_len=400", "-len_control=0", "-seed=1"]
    command = [sys.executable, "-m", "tests.fuzz.http2", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
