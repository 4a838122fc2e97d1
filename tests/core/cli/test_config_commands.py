"""What the commands on the configuration print is true of what is in force."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from sidecar.cli import app
from sidecar.config.load import load
from tests.core.config.test_config import GOOD, PRICE, write


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def source_of(output: str, line: str) -> str:
    (found,) = [text for text in output.splitlines() if text.strip().startswith(line)]
    return found.rpartition("# ")[2]


def test_what_is_shown_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_SIDECAR__STORE__WHEN_DOWN", "spool")
    models = [{**GOOD["models"][0], "prices": [PRICE], "limits": {"max_tools": 3}}]
    path = write(tmp_path, {**GOOD, "models": models, "keep_alive": 15})
    shown = run("config", "show", "--config", str(path))
    assert load(write(tmp_path, yaml.safe_load(shown))) == load(write(tmp_path, {**GOOD, "models": models}))
    assert source_of(shown, "keep_alive:") == "file"
    assert source_of(shown, "max_tools: 3") == "file"
    assert source_of(shown, "max_images:") == "default"
    assert source_of(shown, "when_down:") == "environment"


def test_no_password_is_shown(tmp_path: Path) -> None:
    path = write(tmp_path, {**GOOD, "store": {"url": "postgresql://user:secret@db/ledger"}})
    shown = run("config", "show", "--config", str(path))
    assert "secret" not in shown
    assert "postgresql://user:***@db/ledger" in shown


def test_a_mistake_is_told_as_elsewhere(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["config", "show", "--config", str(write(tmp_path, {**GOOD, "node": 1}))])
    assert result.exit_code == 2
    assert "node: a text is needed" in result.output


@pytest.mark.parametrize(
    ("change", "fits"), [({}, True), ({"workers": "auto"}, True), ({"nod": 1}, False), ({"models": [{}]}, False)]
)
def test_the_schema_takes_what_is_taken(change: dict[str, Any], fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(run("config", "schema")))
    assert validator.is_valid({**GOOD, **change}) is fits


def test_the_version_is_told() -> None:
    assert run("--version").strip().count(".") == 2
