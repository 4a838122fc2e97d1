"""``responses-sidecar verify``: nothing to say about the real stack, and the right rule about a faulty endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from conformance.client import NoAnswerError, request
from conformance.probes import METADATA, probes_for
from sidecar.cli import app
from stack.local import SMOLLM2, LocalStack
from tests.core.conformance.streams import encode, message, response, stream

TEXT = stream(message(0, "Hel", "lo"))
ANSWER = TEXT[-1]["response"]
ERROR = {"error": {"message": "No.", "type": "invalid_request_error", "param": None, "code": "invalid_request"}}


def verify(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["verify", *arguments])


class Faulty(BaseHTTPRequestHandler):
    """An endpoint that answers everything with one text, in chunks that the test's class gives."""

    protocol_version = "HTTP/1.1"
    chunks: tuple[bytes, ...] = ()
    end = b"0\r\n\r\n"

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "first"}, {"id": "second"}]})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        try:
            body = json.loads(content)
        except ValueError:
            return self._send(400, ERROR)
        if self.headers["content-type"] != "application/json" or "input" not in body or body["model"] != "first":
            return self._send(400, ERROR)
        if self.headers["authorization"] not in (None, "Bearer right"):
            return self._send(401, ERROR)
        if not body.get("stream"):
            return self._send(200, response("completed", ANSWER["output"]))
        self._head(200, "text/event-stream", {"transfer-encoding": "chunked"})
        for chunk in self.chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(self.end)
        self.close_connection = True

    def _send(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self._head(status, "application/json", {"content-length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": content_type, "x-request-id": "r", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def served(*chunks: bytes, end: bytes = Faulty.end) -> Iterator[str]:
    """A running endpoint that streams ``chunks``; its URL."""
    handler = type("Handler", (Faulty,), {"chunks": chunks, "end": end})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def echoing(chunks: list[dict[str, Any]]) -> bytes:
    """A stream that echoes the metadata of the probe which looks for it."""
    last = {**chunks[-1], "response": {**chunks[-1]["response"], "metadata": METADATA}}
    return encode([*chunks[:-1], last])


# Half a dozen answers of the chat model on a busy machine, after the start of all parts.
@pytest.mark.timeout(400)
def test_the_real_stack_is_sound(stack: LocalStack) -> None:
    command = [sys.executable, "-m", "sidecar", "verify", stack.url]
    settings = ["--key", stack.api_key, "--model", SMOLLM2.name, "--json"]
    done = subprocess.run([*command, *settings], capture_output=True, text=True, timeout=300, check=False)
    report = json.loads(done.stdout)
    assert [result["violations"] for result in report["results"]] == [[] for _ in probes_for(stack.api_key)]
    assert report["sound"] is True
    assert done.returncode == 0


def test_a_report_to_read_has_a_line_for_each_request() -> None:
    with served(echoing(TEXT)) as url:
        done = verify(url, "--key", "right")
    assert done.stdout.splitlines()[0] == f"POST {url}/responses, model first"
    assert done.stdout.count("ok    ") == len(probes_for("right"))
    assert done.stdout.splitlines()[-1] == f"{len(probes_for('right'))} requests, 0 violations, 0 warnings"
    assert done.exit_code == 0


def without_a_delta() -> bytes:
    events = [event for event in TEXT if event.get("delta") != "lo"]
    return echoing([{**event, "sequence_number": number} for number, event in enumerate(events)])


@pytest.mark.parametrize(
    ("chunks", "end", "rule"),
    [
        ((without_a_delta(),), Faulty.end, "done-equals-deltas"),
        ((encode(TEXT),), Faulty.end, "metadata-echo"),
        ((echoing(TEXT),), b"", "http-complete"),
    ],
)
def test_a_fault_is_named_and_ends_with_status_1(chunks: tuple[bytes, ...], end: bytes, rule: str) -> None:
    with served(*chunks, end=end) as url:
        done = verify(url)
        as_json = verify(url, "--json")
    assert f"\n      {rule}" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f": {rule}")
    results = json.loads(as_json.stdout)["results"]
    assert {found["rule"] for result in results for found in result["violations"]} == {rule}
    assert (done.exit_code, as_json.exit_code) == (1, 1)


def test_a_chunk_inside_an_event_is_a_warning_only() -> None:
    sound = echoing(TEXT)
    with served(sound[:100], sound[100:]) as url:
        done = verify(url)
    assert "warning: sse-chunks (event 0)" in done.stdout
    assert done.exit_code == 0


@pytest.mark.parametrize("size", [1, 100_000])
def test_chunks_are_told_as_they_were_sent(size: int) -> None:
    chunks = [b"x" * size, b"yz", b"w" * size]
    with served(*chunks) as url:
        body = json.dumps({"model": "first", "input": "", "stream": True}).encode()
        answer = request("POST", f"{url}/responses", {"content-type": "application/json"}, body)
    assert (answer.chunks, answer.failure) == (chunks, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda url: ("ftp://host",), "not an http or https URL"),
        (lambda url: (f"{url}/gone",), "refused"),
    ],
)
def test_an_endpoint_that_cannot_be_tried_ends_with_status_2(
    arguments: Callable[[str], tuple[str, ...]], words: str
) -> None:
    with served() as url:
        pass
    done = verify(*arguments(url))
    assert done.exit_code == 2
    assert words in done.stderr


def test_nothing_that_listens_is_no_answer() -> None:
    with served() as url:
        pass
    with pytest.raises(NoAnswerError):
        request("GET", url, {})
