"""The form of the log, for machines and for people."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from sidecar.exchange.events import UpstreamEnd
from sidecar.responses.caller import Caller
from sidecar.telemetry.access_log import AccessLog
from sidecar.telemetry.log_lines import LogFormat, configure_logging
from tests.core.kit import final, play, text

END = UpstreamEnd(True, 200, None, 102.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Logged(Protocol):
    def __call__(self, form: LogFormat = "json", level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
        """Configure the log; where it goes."""


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logged]:
    """Afterwards logging is as it was."""
    root, sidecar = logging.getLogger(), logging.getLogger("sidecar")
    before, level_before = root.level, sidecar.level

    def configure(form: LogFormat = "json", level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
        for name in ("logThreads", "logProcesses", "logMultiprocessing", "_srcfile"):
            monkeypatch.setattr(logging, name, getattr(logging, name))
        monkeypatch.setattr(root, "handlers", [])
        stream = stream or io.StringIO()
        configure_logging(form, level, stream)
        return stream

    yield configure
    logging.captureWarnings(False)
    root.setLevel(before)
    sidecar.setLevel(level_before)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_each_line_is_an_object_that_says_when_who_and_what(logged: Logged) -> None:
    stream = logged()
    logging.getLogger("sidecar.server.worker").warning("model %s: «%s»\nand more", "m", "é")
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "logger": "sidecar.server.worker", "message": "model m: «é»\nand more"}


def test_an_exception_stands_in_its_line(logged: Logged) -> None:
    stream = logged()
    try:
        raise ValueError("of a fault")
    except ValueError:
        logging.getLogger("sidecar").exception("it failed")
    (line,) = lines(stream)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: of a fault")


def test_a_request_has_a_line_with_the_ids_that_others_have_too(logged: Logged) -> None:
    stream = logged()
    played, _ = play([text("secret"), final()], input="a question")
    report = played.report
    report.surface, report.trace_id = "node", "4bf92f3577b34da6a3ce929d0e0e4736"
    report.caller = Caller("org_1", "key_1", "usr_1", "prj_1", "env_1")
    AccessLog().observe(played, END, [])
    (line,) = lines(stream)
    assert line["response_id"].startswith("resp_")
    expected = {
        "message": "request",
        "request_id": "r-1",
        "trace_id": report.trace_id,
        "organization": "org_1",
        "project": "prj_1",
        "environment": "env_1",
        "key": "key_1",
        "surface": "node",
        "model": "letters",
        "outcome": "completed",
        "routes": ["triton"],
        "input_tokens": 5,
        "output_tokens": 6,
    }
    assert {name: line[name] for name in expected} == expected
    assert "secret" not in stream.getvalue()
    assert "question" not in stream.getvalue()


@pytest.mark.parametrize(("form", "stream"), [("text", io.StringIO()), ("auto", Terminal())])
def test_people_get_words(form: LogFormat, stream: io.StringIO, logged: Logged) -> None:
    logged(form, stream=stream)
    played, _ = play([text("abc"), final()])
    AccessLog().observe(played, END, [])
    line = stream.getvalue()
    assert "INFO    access: request request_id=r-1 " in line
    assert "output_tokens=3" in line
    assert "None" not in line


def test_what_is_gathered_gets_objects_by_itself(logged: Logged) -> None:
    stream = logged("auto")
    logging.getLogger("sidecar").info("said")
    assert [line["message"] for line in lines(stream)] == ["said"]


def test_libraries_say_no_more_at_any_level(logged: Logged) -> None:
    stream = logged(level="debug")
    logging.getLogger("sidecar").debug("ours")
    logging.getLogger("library").debug("theirs")
    assert [line["message"] for line in lines(stream)] == ["ours"]
