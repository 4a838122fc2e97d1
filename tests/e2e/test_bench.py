"""The bench's own parts work together: its helpers, compiled or not, and a wire between them."""

import shutil
from pathlib import Path

import pytest

from bench import native, nodes
from bench.loads import Load
from bench.measure import Bench
from bench.upstream import Upstream

# Short, and with tokens that come together, so that readers see more than one at a time.
LOAD = Load("smoke", streams=8, rate=100, tokens=80, in_step=True)


def progress(_step: str) -> None:
    pass


@pytest.mark.parametrize("compiled", [True, False])
def test_the_helpers_bring_every_token(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_BUILT", tmp_path / "native")
    if not compiled:
        monkeypatch.setattr(shutil, "which", lambda _program: None)
    with Upstream(tmp_path, progress) as upstream, nodes.straight(tmp_path, upstream, progress) as node:
        figures = Bench(upstream, progress).measure(node, LOAD, {}).figures
    assert (figures.requests, figures.failures) == (LOAD.streams, {})


def test_a_wire_is_measured(tmp_path: Path) -> None:
    with (
        Upstream(tmp_path, progress) as upstream,
        nodes.sidecar(tmp_path, upstream, "tunnel", "http2", progress) as node,
    ):
        measured = Bench(upstream, progress).measure(node, LOAD, dict.fromkeys(node.parts, 0.0))
    assert (measured.figures.requests, measured.figures.failures) == (LOAD.streams, {})
    assert set(measured.cpu_us) == {"envoy", "sidecar"}
    assert node.workers


def test_passing_on_is_measured(tmp_path: Path) -> None:
    with Upstream(tmp_path, progress) as upstream, nodes.passing(tmp_path, upstream, progress) as node:
        measured = Bench(upstream, progress).measure(node, LOAD, dict.fromkeys(node.parts, 0.0))
    assert (measured.figures.requests, measured.figures.failures) == (LOAD.streams, {})
    assert node.workers


def test_the_echo_is_measured(tmp_path: Path) -> None:
    with Upstream(tmp_path, progress) as upstream, nodes.echo(tmp_path, upstream, progress) as node:
        measured = Bench(upstream, progress).measure(node, LOAD, dict.fromkeys(node.parts, 0.0))
    assert (measured.figures.requests, measured.figures.failures) == (LOAD.streams, {})
    assert measured.cpu_us["sidecar"] > 1, "the answers pass through it"
