"""What the status page is told of a node: its plots' points, its models, its failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import values

from sidecar.admin.status.node import Node
from sidecar.admin.status.overview import overview
from sidecar.admission.limits import Limits
from sidecar.backends.triton.errors import STARTING
from sidecar.generation.reasoning import ReasoningFormat
from sidecar.generation.style import choose_style
from sidecar.surfaces import SURFACES
from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.metrics import Metrics, open_metrics
from sidecar.telemetry.recent.failures import Failure, Failures
from sidecar.telemetry.recent.steps import STEP_SECONDS, STEPS, Count, Steps
from tests.core.exchange.native_kit import model as native_model
from tests.core.kit import catalog, model

BEGIN = 1_800_000_000.0
"""The begin of a point of the plots."""
POINT_SECONDS = 3 * STEP_SECONDS


def node(directory: Path, **changed: Any) -> Node:
    told: dict[str, Any] = {
        "catalog": catalog,
        "surfaces": SURFACES,
        "accounts": False,
        "metrics": directory / "metrics",
        "recent": directory / "recent",
        "defaults": Limits(),
        "currency": "USD",
        "playground": None,
    }
    return Node(**{**told, **changed})


@pytest.fixture
def metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metrics]:
    """Those of worker 0, in this process; afterwards the library is as it was."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    yield open_metrics(tmp_path / "metrics", 0)


class Busy:
    """A worker that does the same in each step, from an hour and more ago until :data:`BEGIN` and ``seconds``."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self.now = 0.0
        steps = Steps(directory / "recent", 0, lambda: self.now)
        for step in range(-STEPS - 10, int(seconds // STEP_SECONDS) + 1):
            self.now = BEGIN + step * STEP_SECONDS
            steps.add(Count.REQUESTS)
            steps.add(Count.OUTPUT_TOKENS, 200)
            steps.add(Count.STREAM_MS, 15_000)
            steps.first_token(0.5)
        self.now = BEGIN + seconds


@pytest.mark.parametrize("seconds", [0.0, 9.9, 10.0, 25.0, 29.9, 30.0])
def test_each_point_is_a_mean_of_its_steps_whenever_one_asks(tmp_path: Path, seconds: float) -> None:
    busy = Busy(tmp_path, seconds)
    hour = overview(node(tmp_path), busy.now)["hour"]
    whole = int(seconds // STEP_SECONDS)
    assert set(hour["output_tokens_per_second"]) == {20.0}
    assert set(hour["streams"]) == {1.5}
    assert all(times == pytest.approx(0.5, rel=0.27) for times in hour["first_token_p95"])
    # Only the last point may lack steps, as they are still to come.
    assert set(hour["requests"][:-1]) == {3}
    assert hour["requests"][-1] == (whole % 3 or 3)
    assert hour["ends_at"] == BEGIN + whole * STEP_SECONDS
    assert sum(hour["requests"]) in range(STEPS - 2, STEPS + 1)
    assert hour["bin_seconds"] == POINT_SECONDS


def test_a_point_moves_and_does_not_change(tmp_path: Path) -> None:
    now = 0.0
    steps = Steps(tmp_path / "recent", 0, lambda: now)
    for step in range(90):
        now = BEGIN + step * STEP_SECONDS
        steps.add(Count.FAILED, step % 7)
    rows = [overview(node(tmp_path), now + more)["hour"]["failed"] for more in (0, 10, 20, 30)]
    points = [[point for point in row if point] for row in rows]
    assert points[0][:29] == points[1][:29] == points[2][:29] == points[3][:29]


def test_the_speed_is_that_of_the_last_seconds(tmp_path: Path) -> None:
    now = BEGIN
    steps = Steps(tmp_path / "recent", 0, lambda: now)
    steps.add(Count.OUTPUT_TOKENS, 300)
    now += STEP_SECONDS
    assert overview(node(tmp_path), now)["now"]["tokens_per_second"] == 30
    steps.add(Count.OUTPUT_TOKENS, 150)
    assert overview(node(tmp_path), now + 5)["now"]["tokens_per_second"] == 30
    assert overview(node(tmp_path), now + 20)["now"]["tokens_per_second"] == 0


def test_a_node_that_has_done_nothing_yet(tmp_path: Path) -> None:
    told = overview(node(tmp_path), BEGIN)
    assert told["failures"] == []
    assert told["now"]["streams"] == told["now"]["workers"] == told["now"]["tokens_per_second"] == 0
    assert told["now"]["store_up"] is None
    assert set(told["hour"]["first_token_p50"]) == {None}
    assert overview(node(tmp_path, accounts=True), BEGIN)["now"]["store_up"] is False


def test_gauges_are_those_of_the_metrics(tmp_path: Path, metrics: Metrics) -> None:
    metrics.set(table.STREAMS, 3)
    metrics.set(table.ADMISSION_QUEUE, 2)
    for lane in ("2 KiB", "larger"):
        metrics.set(table.PREPARATION_QUEUE, 1, lane)
    metrics.set(table.STORE_UP, 1)
    metrics.set(table.MODEL_READY, 1, "letters")
    told = overview(node(tmp_path, accounts=True), BEGIN)
    assert (told["now"]["streams"], told["now"]["waiting"], told["now"]["store_up"]) == (3, 4, True)
    assert told["models"][0]["ready"] is True


def test_models_are_told_with_contract_and_formats(tmp_path: Path) -> None:
    markers = ReasoningFormat("<r>", "</r>")
    served = catalog(
        model(style=choose_style("", reasoning="think", calls="hermes"), notes=("a note",), aliases=["l"]),
        model(name="own", contract=None, style=choose_style("", reasoning=markers, calls="none")),
        native_model(),
    )
    first, own, native = overview(node(tmp_path, catalog=lambda: served), BEGIN)["models"]
    assert (first["contract"], first["reasoning_format"], first["tool_format"]) == ("token_level", "think", "hermes")
    assert (first["triton_model"], first["notes"], first["aliases"]) == ("tensorrt_llm", ["a note"], ["l"])
    assert (own["contract"], own["reasoning_format"], own["tool_format"]) == (None, "own markers", None)
    assert (own["ready"], native["ready"]) == (False, None)
    assert native["routes"][0] == {"upstream": "up0", "model": "gpt-at-0"}
    assert "sk-secret" not in str(native)


def test_a_model_that_does_not_answer_is_told_with_the_failure(tmp_path: Path) -> None:
    served = catalog(replace(model(), outage=STARTING))
    (told,) = overview(node(tmp_path, catalog=lambda: served), BEGIN)["models"]
    assert (told["ready"], told["outage"]) == (False, "starting")


def test_failures_have_the_status_of_their_code(tmp_path: Path) -> None:
    Failures(tmp_path / "recent", 0).note(Failure(BEGIN, "r-1", "node", "m", "rate_limited", "", 0.1))
    (failure,) = overview(node(tmp_path), BEGIN)["failures"]
    assert (failure["request_id"], failure["status"]) == ("r-1", 429)


def test_the_playground_has_the_surfaces_with_their_models(tmp_path: Path) -> None:
    assert overview(node(tmp_path), BEGIN)["playground"] is None
    told = overview(node(tmp_path, playground="http://127.0.0.1:8080"), BEGIN)["playground"]
    assert [surface["name"] for surface in told] == ["node", "bureau"]
    assert told[0]["models"] == ["letters"]
