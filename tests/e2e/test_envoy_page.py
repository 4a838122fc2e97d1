"""The commands of docs/envoy.md, run in their order as they stand there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import trustme
import yaml
from typer.testing import CliRunner

from sidecar.cli import app
from stack.envoy import validate
from stack.paths import ROOT

_PAGE = (ROOT / "docs" / "envoy.md").read_text()
COMMANDS = [line for block in _PAGE.split("```console\n")[1:] for line in block.partition("```")[0].splitlines()]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a configuration and a certificate."""
    directory = tmp_path_factory.mktemp("node")
    model = {"name": "m", "triton_model": "m", "tokenizer": "/models/m", "context_length": 2048}
    config = {
        "node": "n1",
        "workers": 2,
        "sockets": "sockets",
        "triton": {"address": "127.0.0.1:8001"},
        "models": [model],
    }
    (directory / "sidecar.yaml").write_text(yaml.safe_dump(config))
    certificate = trustme.CA().issue_cert("localhost")
    (directory / "tls").mkdir()
    certificate.cert_chain_pems[0].write_to_path(directory / "tls" / "chain.pem")
    certificate.private_key_pem.write_to_path(directory / "tls" / "key.pem")
    return directory


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_work(command: str, node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(node)
    words, _, written = command.partition(" > ")
    program, *arguments = shlex.split(words)
    if program == "envoy":
        file = Path(arguments.pop())
        assert arguments == ["--mode", "validate", "-c"]
        validate(file)
        return
    assert program == "responses-sidecar"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert list(yaml.load_all(result.stdout, yaml.CSafeLoader))
    Path(written).write_text(result.stdout)
