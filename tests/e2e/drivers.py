"""Runs real clients in their own environments: a small program per client, which prints what it got as JSON."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from stack.local import LocalStack
from stack.paths import CLIENTS_VENV
from stack.setup import NODE, NODE_TESTS, PYTHON_TESTS


@dataclass(frozen=True)
class Access:
    """All that a client is told of a surface: its base URL, and a key."""

    url: str
    api_key: str

    @classmethod
    def to_bureau(cls, stack: LocalStack) -> Self:
        """That of the bureau surface. ``stack`` itself is that of the node's."""
        return cls(stack.bureau_url, stack.project_key)


def run_node(program: str, at: LocalStack | Access, *arguments: str) -> Any:
    """What a program of ``tests/e2e/node`` prints when it is given a base URL, a key and ``arguments``."""
    return json.loads(run([NODE, program, at.url, at.api_key, *arguments], NODE_TESTS))


def run_python(program: str, at: LocalStack | Access, *arguments: str) -> Any:
    """What a program of ``tests/e2e/python`` prints when it is given the same."""
    return json.loads(run([CLIENTS_VENV / "bin" / "python", program, at.url, at.api_key, *arguments], PYTHON_TESTS))


def run(command: Sequence[str | Path], directory: Path, environment: Mapping[str, str] | None = None) -> str:
    """The standard output of a command that succeeds. ``environment`` is added to the caller's."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
