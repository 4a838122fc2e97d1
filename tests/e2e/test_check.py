"""``responses-sidecar check`` beside a running stack: all good, or the one thing that is not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from sidecar.cli import app
from sidecar.envoy.render import render
from stack.local import LocalStack
from stack.net import free_port
from stack.paths import ROOT


def check(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", "--config", str(config), *arguments])


def changed(stack: LocalStack, directory: Path, **model: Any) -> Path:
    """The stack's configuration with another first model, and nothing else that is served."""
    config = yaml.safe_load(stack.sidecar.config.read_text())
    config["models"] = [{**config["models"][0], **model}]
    config["sockets"] = str(directory / "sockets")
    del config["upstreams"]
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
    ("model", "status", "words"),
    [
        ({"triton_model": "missing"}, 1, "does not serve model missing"),
        ({"context_length": 100_000}, 1, "models[0].context_length: 100000 is more than the model's"),
        ({"tokenizer": "/nowhere"}, 2, "models[0].tokenizer: /nowhere/tokenizer.json: no such file"),
        ({"tool_format": "yaml"}, 2, "models[0].tool_format: unknown tool format yaml; known are"),
    ],
)
def test_what_is_wrong_is_said(
    stack: LocalStack, tmp_path: Path, model: dict[str, Any], status: int, words: str
) -> None:
    result = check(changed(stack, tmp_path, **model))
    assert result.exit_code == status
    assert words in result.output


def test_what_cannot_be_served_is_not_served(stack: LocalStack, tmp_path: Path) -> None:
    path = changed(stack, tmp_path, tool_format="yaml")
    command = [sys.executable, "-m", "sidecar", "serve", "--config", str(path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"{path}: models[0].tool_format: unknown tool format yaml; known are ")


def test_an_unreachable_triton_is_said(stack: LocalStack, tmp_path: Path) -> None:
    config = yaml.safe_load(stack.sidecar.config.read_text())
    config["triton"] = {"address": f"127.0.0.1:{free_port()}"}
    path = tmp_path / "sidecar.yaml"
    path.write_text(yaml.safe_dump(config))
    result = check(path)
    assert result.exit_code == 1
    assert "does not answer (UNAVAILABLE)" in result.output


def test_a_route_of_the_origin_wire_without_an_upstream_is_said(stack: LocalStack, tmp_path: Path) -> None:
    envoy = tmp_path / "envoy.yaml"
    envoy.write_text(render(replace(stack.envoy.settings, wire="origin")))
    result = check(stack.sidecar.config, "--envoy-config", str(envoy))
    assert (result.exit_code, "FAIL  triton.upstream: " in result.output) == (2, True)
    config = yaml.safe_load(stack.sidecar.config.read_text())
    config["triton"]["upstream"] = "unix:egress.sock"
    path = tmp_path / "sidecar.yaml"
    path.write_text(yaml.safe_dump(config))
    assert "triton.upstream" not in check(path, "--envoy-config", str(envoy)).output


def test_an_envoy_configuration_that_envoy_refuses_is_said(stack: LocalStack, tmp_path: Path) -> None:
    broken = tmp_path / "envoy.yaml"
    broken.write_text("static_resources: {listeners: [{nonsense: 1}]}\n")
    result = check(stack.sidecar.config, "--envoy-config", str(broken))
    assert result.exit_code == 1
    assert "FAIL  envoy:" in result.output


def test_an_envoy_configuration_that_is_not_there_is_said(stack: LocalStack, tmp_path: Path) -> None:
    result = check(stack.sidecar.config, "--envoy-config", str(tmp_path / "nothing.yaml"))
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    assert "FAIL  envoy:" in result.output


def test_a_wrong_configuration_is_exit_status_2(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.yaml"
    path.write_text("node: n1\n")
    result = check(path)
    assert result.exit_code == 2
    assert "models: this key is needed" in result.output
