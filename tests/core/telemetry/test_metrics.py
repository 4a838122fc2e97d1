"""What is counted of exchanges, and how the workers' files come together."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import values

from sidecar.exchange.commands import SendHead
from sidecar.exchange.events import Answered, ClientGone, Event, RequestComplete, UpstreamEnd
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.exchange.report import Attempt
from sidecar.responses.errors import ApiError
from sidecar.server.preparation import LANES
from sidecar.server.sampling import lane_name
from sidecar.telemetry.metrics import files, table
from sidecar.telemetry.metrics.log_records import CountLogRecords
from sidecar.telemetry.metrics.metrics import Metrics, open_metrics, scrape
from sidecar.telemetry.metrics.observer import CountExchanges
from stack.paths import ROOT
from tests.core.kit import exchange, failure, final, play, request, text
from tests.core.telemetry.scraped import Scraped

_WORKER = """
import sys
from pathlib import Path
from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.metrics import open_metrics
metrics = open_metrics(Path(sys.argv[1]), int(sys.argv[2]))
metrics.count(table.WORKER_STARTS)
metrics.set(table.WORKERS, 1)
metrics.set(table.STORE_UP, int(sys.argv[2]))
metrics.observe(table.LOOP_LAG, 0.02)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "metrics"


@pytest.fixture
def metrics(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metrics]:
    """Those of worker 0, in this process; afterwards the library is as it was."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    yield open_metrics(directory, 0)


@pytest.fixture
def scraped(metrics: Metrics, directory: Path) -> Callable[[], Scraped]:
    return lambda: Scraped(scrape(directory).decode())


def worker(directory: Path, index: int) -> None:
    """One life of the worker ``index``."""
    subprocess.run([sys.executable, "-c", _WORKER, directory, str(index)], cwd=ROOT, check=True)


def over(metrics: Metrics, played: Exchange, event: Event | None = None) -> None:
    """The exchange that was ``played`` is over."""
    played.report.surface = "node"
    CountExchanges(metrics).observe(played, event or UpstreamEnd(True, 200, None, 102.0), [])


def test_an_answer_is_counted_from_its_report(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    played, _ = play([text("abc"), text("de"), final()])
    played.report.usage.cached_tokens = 4
    over(metrics, played)
    now, labels = scraped(), {"gen_ai_request_model": "letters", "gen_ai_provider_name": "triton"}
    assert now.value("responses_requests_total", surface="node", model="letters", outcome="completed", code="") == 1
    assert now.value("gen_ai_server_request_duration_seconds_sum", **labels) == 2
    assert now.value("gen_ai_server_time_to_first_token_seconds_sum", **labels) == 1
    assert now.value("gen_ai_server_time_to_first_token_seconds_bucket", le="0.75", **labels) == 0
    assert now.value("gen_ai_server_time_to_first_token_seconds_bucket", le="1.0", **labels) == 1
    assert now.value("responses_held_head_seconds_count", model="letters") == 1
    assert now.value("responses_upstream_attempts_total", route="triton", outcome="completed") == 1
    told = {kind: now.value("responses_tokens_total", kind=kind) for kind in ("input", "output", "cached")}
    assert told == {"input": 5, "output": 5, "cached": 4}


def test_the_time_per_token_is_the_mean_after_the_first(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    played, _ = play([text("abcde"), final()])
    timing = played.report.timing
    timing.first_token_at, timing.model_done_at = 101.0, 101.4
    over(metrics, played)
    assert scraped().value("gen_ai_server_time_per_output_token_seconds_sum") == pytest.approx(0.1)
    assert scraped().value("gen_ai_server_time_per_output_token_seconds_count") == 1


def test_a_failure_is_counted_by_its_code_and_class(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    played, _ = play([failure("cannot")])
    report = played.report
    assert report.backend_error is not None
    over(metrics, played)
    assert scraped().value("responses_requests_total", outcome="error", code=report.outcome) == 1
    assert scraped().value("responses_upstream_failures_total", failure=report.backend_error.failure) == 1
    assert scraped().value("gen_ai_server_request_duration_seconds_count", error_type=report.outcome) == 1
    assert scraped().value("gen_ai_server_time_to_first_token_seconds_count") == 0


def test_each_attempt_is_counted_by_its_route(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    played, _ = play([text("a"), final()])
    played.report.attempts = [Attempt("first", "infer_backend_unavailable", 503), Attempt("second")]
    over(metrics, played)
    assert scraped().value("responses_upstream_attempts_total", route="first", outcome="infer_backend_unavailable") == 1
    assert scraped().value("responses_upstream_attempts_total", route="second", outcome="completed") == 1
    assert scraped().value("gen_ai_server_request_duration_seconds_count", gen_ai_provider_name="second") == 1


def test_what_models_get_wrong_is_counted(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    played, _ = play([text("a"), final()])
    report = played.report
    report.broken_characters, report.broke_schema, report.broken_arguments = 3, True, 2
    over(metrics, played)
    assert scraped().value("responses_broken_characters_total", model="letters") == 3
    faults = {
        fault: scraped().value("responses_faulty_outputs_total", fault=fault) for fault in ("schema", "arguments")
    }
    assert faults == {"schema": 1, "arguments": 2}
    assert scraped().value("responses_faulty_outputs_total", fault="missed_call") == 0


def test_a_client_s_words_become_no_labels(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    refused = exchange()
    refused.report.surface = "node"
    counting = CountExchanges(metrics)
    event: Event = replace(request(model="nobody-knows-it"), headers={**request().headers, "x-request-id": "its-id"})
    (ask,) = refused.handle(event)
    assert isinstance(ask, Prepare)
    counting.observe(refused, event, [ask])
    with pytest.raises(ApiError) as error:
        ask.plan()
    event = Answered(ask, error.value, 103.0)
    counting.observe(refused, event, refused.handle(event))
    assert scraped().value("responses_requests_total", model="", outcome="error", code=error.value.code) == 1
    assert scraped().value("responses_step_duration_seconds_sum", step="Prepare") == 3
    assert not any("nobody-knows-it" in str(sample) or "its-id" in str(sample) for sample in scraped().samples)


def test_a_stream_is_in_flight_until_it_is_over(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    counting, streaming = CountExchanges(metrics), exchange()
    event: RequestComplete = request(stream=True)
    counting.observe(streaming, event, [SendHead({})])
    assert scraped().value("responses_streams_in_flight") == 1
    streaming.handle(ClientGone())
    counting.observe(streaming, ClientGone(), [])
    assert scraped().value("responses_streams_in_flight") == 0
    assert scraped().value("responses_requests_total", outcome="client_gone") == 1


def test_nothing_of_an_exchange_is_kept_when_it_is_over(metrics: Metrics) -> None:
    counting, left = CountExchanges(metrics), exchange()
    event = request(stream=True)
    counting.observe(left, event, [*left.handle(event), SendHead({})])
    left.handle(ClientGone())
    counting.observe(left, ClientGone(), [])
    assert not any(vars(counting)[name] for name in ("_asked", "_streams"))


def test_warnings_and_errors_of_the_log_are_counted(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    handler = CountLogRecords(metrics)
    for name, level in (("sidecar.extproc.driver", 40), ("sidecar.extproc", 30), ("asyncio", 50)):
        handler.emit(logging.LogRecord(name, level, "", 0, "words of a client", None, None))
    counted = {
        (part, level): scraped().value("responses_log_records_total", part=part, level=level)
        for part in ("extproc", "other")
        for level in ("warning", "error")
    }
    assert counted == {
        ("extproc", "warning"): 1,
        ("extproc", "error"): 1,
        ("other", "warning"): 0,
        ("other", "error"): 1,
    }
    assert "words" not in str(scraped().samples)


def test_workers_come_together_and_one_that_dies_takes_its_gauges_along(directory: Path) -> None:
    directory.mkdir()
    for index in (0, 1):
        worker(directory, index)
    both = Scraped(scrape(directory).decode())
    assert both.value("responses_worker_starts_total") == 2
    assert both.value("responses_workers") == 2
    assert both.value("responses_store_up") == 0
    assert both.value("responses_event_loop_lag_seconds_bucket", le="0.025") == 2
    files.forget_gauges(directory, 0)
    one = Scraped(scrape(directory).decode())
    assert (one.value("responses_worker_starts_total"), one.value("responses_workers")) == (2, 1)
    assert one.value("responses_store_up") == 1
    worker(directory, 0)
    again = Scraped(scrape(directory).decode())
    assert (again.value("responses_worker_starts_total"), again.value("responses_workers")) == (3, 2)
    assert len(list(directory.iterdir())) == 8


def test_the_supervisor_tells_when_and_whether_the_configuration_was_loaded(directory: Path) -> None:
    successful, at = (metric.name for metric in table.OF_THE_SUPERVISOR)
    directory.mkdir()
    assert not Scraped(scrape(directory).decode()).names()
    files.note_loaded(directory, 1793836700.5)
    files.note_refused(directory)
    refused = Scraped(scrape(directory).decode())
    assert (refused.value(successful), refused.value(at)) == (0, 1793836700.5)
    files.note_loaded(directory, 1793836701.5)
    loaded = Scraped(scrape(directory).decode())
    assert (loaded.value(successful), loaded.value(at)) == (1, 1793836701.5)


def test_what_is_left_is_removed_but_under_a_sidecar_that_runs(directory: Path) -> None:
    first = files.claim(directory)
    assert first is not None
    worker(directory, 0)
    with pytest.raises(BlockingIOError):
        files.claim(directory)
    assert list(directory.glob("*.db"))
    first.close()
    second = files.claim(directory)
    assert second is not None
    assert not list(directory.glob("*.db"))
    second.close()


def test_files_take_their_room_in_advance(metrics: Metrics, directory: Path) -> None:
    for file in directory.iterdir():
        assert file.stat().st_blocks * 512 >= file.stat().st_size > 0
        assert file.stat().st_mode & 0o077 == 0


def test_a_disk_without_room_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="no space"):
        files.make(directory, 0)


def test_every_metric_is_in_the_table_and_can_be_read(metrics: Metrics, scraped: Callable[[], Scraped]) -> None:
    for metric in table.METRICS:
        labels = [f"a {label}" for label in metric.labels]
        if metric.kind == "counter":
            metrics.count(metric, *labels)
        elif metric.kind == "gauge":
            metrics.set(metric, 1, *labels)
        else:
            metrics.observe(metric, 1, *labels)
    suffix = {"counter": "", "gauge": "", "histogram": "_count"}
    assert {metric.name + suffix[metric.kind] for metric in table.METRICS} <= scraped().names()
    named = {value for name, value in vars(table).items() if isinstance(value, table.Metric)}
    assert named == {*table.METRICS, *table.OF_THE_SUPERVISOR}


def test_labels_are_those_whose_values_we_know() -> None:
    labels = {label for metric in table.METRICS for label in metric.labels}
    conventions = {"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type"}
    ours = {"surface", "model", "outcome", "code", "kind", "step", "decision", "lane", "fault", "failure", "route"}
    assert labels == conventions | ours | {"error_type", "access", "part", "level"}


def test_lanes_are_named_by_their_largest_bodies() -> None:
    assert [lane_name(size) for size in LANES] == ["2 KiB", "16 KiB", "256 KiB", "1024 KiB", "larger"]
