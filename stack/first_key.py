"""The first organization and its keys, made by the sidecar's own commands.

They run in this process: the imports of one more would take longer than all that they do.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidecar.cli import app
from stack.process import StackError

ORGANIZATION = "local"
# A process has one standard output, and stacks may start side by side.
_OUTPUT = threading.Lock()
_ALL_SCOPES = ("infer:run", "infer:read", "usage:read", "admin")


def first_key(config: Path, kept: Path) -> str:
    """The key in the file ``kept``, or a new one that is kept there, where only this user can read it.

    Raises:
        StackError: a command failed.
    """
    _output(config, ("store", "migrate"))
    organizations = command(config, "orgs", "list")["organizations"]
    if not any(one["name"] == ORGANIZATION for one in organizations):
        command(config, "orgs", "create", ORGANIZATION)
    return _key(config, kept, *(argument for scope in _ALL_SCOPES for argument in ("--scope", scope)))


def project_key(config: Path, kept: Path) -> str:
    """The same for a key of a project of the organization, which there is.

    Raises:
        StackError: a command failed.
    """
    return _key(config, kept, "--project", "local", "--environment", "development")


def _key(config: Path, kept: Path, *options: str) -> str:
    active = {key["id"] for key in command(config, "keys", "list") if key["state"] == "active"}
    if (found := _read(kept)) is not None and found["id"] in active:
        return found["secret"]
    made = command(config, "keys", "create", ORGANIZATION, "--name", "the local stack", *options)
    _write(kept, {"id": made["id"], "secret": made["secret"]})
    return str(made["secret"])


def command(config: Path, *arguments: str) -> Any:
    """What a command of ``responses-sidecar`` prints as JSON.

    Raises:
        StackError: it failed.
    """
    return json.loads(_output(config, arguments, "--json"))


def _output(config: Path, arguments: Sequence[str], *options: str) -> str:
    output, errors = io.StringIO(), io.StringIO()
    with _OUTPUT, contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = app([*arguments, *options, "--config", str(config)], standalone_mode=False)
    if status:
        raise StackError(f"{' '.join(arguments)} failed: {errors.getvalue().strip()}")
    return output.getvalue()


def _read(path: Path) -> dict[str, str] | None:
    """What is kept; ``None`` where there is nothing, or a crash has left it half written."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and found.keys() == {"id", "secret"} else None


def _write(path: Path, content: dict[str, str]) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file)
