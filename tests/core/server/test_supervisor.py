"""The supervisor has its sockets to itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sidecar.config.load import load
from sidecar.server.fleet import REFUSED
from sidecar.server.supervisor import supervise
from sidecar.telemetry.metrics import files

MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}


async def test_where_a_sidecar_runs_no_other_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sidecar.yaml"
    settings = {"node": "n", "sockets": "sockets", "accounts": False, "triton": {"address": "127.0.0.1:1"}}
    path.write_text(yaml.safe_dump({**settings, "models": [MODEL]}))
    config = load(path)
    held = files.claim(config.metrics)
    assert held is not None
    with held:
        assert await supervise(config, path) == REFUSED
    assert capsys.readouterr().err == f"sockets: another sidecar runs in {config.sockets}\n"
