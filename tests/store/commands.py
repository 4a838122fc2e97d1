"""The commands on a configuration, as an operator types them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml
from typer.testing import CliRunner, Result

from sidecar.cli import app

_MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}

Run = Callable[..., Result]


def write_config(directory: Path) -> Path:
    """A configuration whose store is ``state/ledger.db`` beside it."""
    path = directory / "sidecar.yaml"
    content = {"node": "n", "sockets": "/tmp", "triton": {"address": "127.0.0.1:1"}, "models": [_MODEL]}
    path.write_text(yaml.safe_dump({**content, "store": {"state": "state"}}))
    return path


def runner(config: Path) -> Run:
    """Runs a command of the configuration; it succeeds unless ``status`` says otherwise."""

    def run(*arguments: str, status: int = 0) -> Result:
        result = CliRunner().invoke(app, [*arguments, "--config", str(config)])
        assert result.exit_code == status, result.output
        return result

    return run
