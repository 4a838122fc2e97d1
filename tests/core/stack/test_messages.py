"""What ``./dev`` says when something is not as it should be: the reason, and what to do."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import pytest

from sidecar.generation.formats import FORMATS
from stack import cli
from stack.local import SCRIPTED_MODELS
from stack.net import free_port, why_not_port
from stack.paths import ROOT
from stack.process import StackError, reason
from stack.report import how_to_use

PIP = """Collecting numpy==9.9
  ERROR: Could not find a version that satisfies the requirement numpy==9.9 (from versions: 1.0)
ERROR: No matching distribution found for numpy==9.9

[notice] To update, run: pip install --upgrade pip
"""
APT = """Reading package lists...
E: Unable to locate package libgone
"""
NPM = """npm error code EINTEGRITY
npm error sha512 is not what was expected
npm notice there is a new version
"""
OUTPUTS = [
    (
        PIP,
        "ERROR: Could not find a version that satisfies the requirement numpy==9.9 (from versions: 1.0) "
        "ERROR: No matching distribution found for numpy==9.9",
    ),
    (APT, "E: Unable to locate package libgone"),
    (NPM, "npm error code EINTEGRITY npm error sha512 is not what was expected"),
    ("one\ntwo\n\n", "two"),
    ("", ""),
]


@pytest.mark.parametrize(("output", "expected"), OUTPUTS)
def test_the_reason_of_a_failed_command_is_told(output: str, expected: str) -> None:
    assert reason(output) == expected


def test_dev_itself_tells_pips_reason(tmp_path: Path) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local" / "install.log").write_text(PIP)
    function = subprocess.run(
        ["sed", "-n", "/^install_error() {/,/^}/p", ROOT / "dev"], capture_output=True, text=True, check=True
    ).stdout
    told = subprocess.run(
        ["bash", "-c", f"{function}\ninstall_error"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[1] for line in told.splitlines()] == ["Could", "No"]


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(StackError, match=f"Port {port} is in use: choose another one with --port"):
            cli.refuse_port(port)
    assert why_not_port(free_port()) is None


def test_a_port_of_the_system_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(StackError, match="Port 80 is one of the system's, which this user may not listen on"):
        cli.refuse_port(80)


class Stack:
    """A stack whose model dies at the second look, and one of whose parts ends at the fourth."""

    run_dir = Path("run")

    def __init__(self) -> None:
        self.looks = 0

    def check_alive(self) -> None:
        self.looks += 1
        if self.looks == 4:
            raise StackError("Envoy has ended.")

    def dead_models(self) -> list[str]:
        return ["tiny"] if self.looks >= 2 else []


def test_a_model_that_ends_is_told_once_and_a_part_ends_the_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(StackError, match="Envoy has ended"):
        cli.watch(Stack())  # type: ignore[arg-type]
    told = capsys.readouterr().out
    assert told.count("The process of tiny has ended") == 1
    assert "Start the stack anew; run/triton.log may say why" in told


def test_the_first_screen_says_what_the_model_is_and_how_to_have_a_real_one() -> None:
    screen = how_to_use(
        "http://127.0.0.1:8080/v1/infer",
        "b3os_sk_x",
        ["smollm2-135m", "scripted"],
        "http://127.0.0.1:8080/v1",
        "ib_live_x",
        "http://127.0.0.1:9101/status/",
    )
    assert "http://127.0.0.1:9101/status/" in screen
    assert "http://127.0.0.1:8080/v1\n  with the key ib_live_x" in screen
    assert "smollm2-135m is tiny" in screen
    assert "writes nonsense" in screen
    assert "docs/configuration.md" in screen


def test_there_is_a_scripted_model_for_every_format() -> None:
    names = [model.name for model in SCRIPTED_MODELS]
    assert names == ["scripted", "scripted-thinking", *(f"scripted-{name}" for name in FORMATS)]
