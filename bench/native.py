"""The bench's helpers: compiled on first use where there is a C compiler, else their equals in Python."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from stack.paths import LOCAL
from stack.process import run

_SOURCES = Path(__file__).with_name("native")
_BUILT = LOCAL / "bench" / "native"


def command(name: str, progress: Callable[[str], None]) -> list[str]:
    """How to start a helper, which is ``native/<name>/*.c`` and ``bench.fallback.<name>``."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        progress(f"No C compiler: {name} runs in Python, and takes part of the processors that are measured")
        return [sys.executable, "-m", f"bench.fallback.{name}"]
    files = sorted((_SOURCES / name).iterdir())
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    program = _BUILT / f"{name}-{digest[:16]}"
    if not program.exists():
        progress(f"Compiling {name}")
        _BUILT.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(f".{os.getpid()}")
        sources = [file for file in files if file.suffix == ".c"]
        run([compiler, "-O2", "-o", unfinished, *sources], f"{name} could not be compiled")
        unfinished.rename(program)
    return [str(program)]
