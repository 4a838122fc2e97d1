"""``responses-sidecar check`` beside a running stack: all good, or the one thing that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from sidecar.cli import app
from stack.local import LocalStack
from stack.net import free_port


def check(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", "--config", str(config), *arguments])


def changed(stack: LocalStack, directory: Path, **model: Any) -> Path:
    """The stack's configuration with another first model."""
    config = yaml.safe_load(stack.sidecar.config.read_text())
    config["models"] = [{**config["models"][0], **model}]
    path = directory / "sidecar.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_running_stack_passes_every_check(stack: LocalStack, tmp_path: Path) -> None:
    result = check(changed(stack, tmp_path), "--envoy-config", str(stack.run_dir / "envoy.yaml"))
    assert result.exit_code == 0, result.output
    assert "FAIL" not in result.output
    assert "contract token_level" in result.output
    assert "context 8192 tokens" in result.output
    assert "envoy.yaml is valid" in result.output


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"triton_model": "missing"}, "does not serve model missing"),
        ({"tokenizer": "/nowhere"}, "/nowhere/tokenizer.json"),
        ({"context_length": 100_000}, "context_length 100000 is more than the model's"),
    ],
)
def test_what_is_wrong_is_said(stack: LocalStack, tmp_path: Path, model: dict[str, Any], words: str) -> None:
    result = check(changed(stack, tmp_path, **model))
    assert result.exit_code == 1
    assert words in result.output


def test_an_unreachable_triton_is_said(stack: LocalStack, tmp_path: Path) -> None:
    config = yaml.safe_load(stack.sidecar.config.read_text())
    config["triton"] = {"address": f"127.0.0.1:{free_port()}"}
    path = tmp_path / "sidecar.yaml"
    path.write_text(yaml.safe_dump(config))
    result = check(path)
    assert result.exit_code == 1
    assert "does not answer (UNAVAILABLE)" in result.output


def test_an_envoy_configuration_that_envoy_refuses_is_said(stack: LocalStack, tmp_path: Path) -> None:
    broken = tmp_path / "envoy.yaml"
    broken.write_text("static_resources: {listeners: [{nonsense: 1}]}\n")
    result = check(stack.sidecar.config, "--envoy-config", str(broken))
    assert result.exit_code == 1
    assert "FAIL  envoy:" in result.output


def test_a_wrong_configuration_is_exit_status_2(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.yaml"
    path.write_text("node: n1\n")
    result = check(path)
    assert result.exit_code == 2
    assert "models: Field required" in result.output
