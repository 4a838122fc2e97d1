"""``responses-sidecar verify``: nothing to say about the real stack, and the right rule about a faulty endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from conformance import NoAnswerError, probes_for
from conformance.client import request
from conformance.probes import METADATA
from conformance.stored import STORE
from sidecar.cli import app
from stack.local import SMOLLM2, LocalStack
from tests.core.conformance.streams import encode, message, response, stream

TEXT = stream(message(0, "Hel", "lo"))
ANSWER = TEXT[-1]["response"]
NEEDS_MORE = [*(probe.name for probe in probes_for(None) if probe.optional), STORE.name]
"""The probes of what an endpoint may lack."""


def error(param: str | None = None, code: str = "invalid_request") -> dict[str, Any]:
    return {"error": {"message": "No.\x1b[2J", "type": "invalid_request_error", "param": param, "code": code}}


def verify(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["verify", *arguments])


class Faulty(BaseHTTPRequestHandler):
    """An endpoint that knows texts only and answers with one, in chunks that the test's class gives."""

    protocol_version = "HTTP/1.1"
    chunks: tuple[bytes, ...] = ()
    end = b"0\r\n\r\n"

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            return self._send(404, error())
        self._send(200, {"object": "list", "data": [{"id": "first"}, {"id": "second"}]})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/v1/responses":
            return self._send(404, error())
        try:
            body = json.loads(content)
        except ValueError:
            return self._send(400, error())
        if self.headers["content-type"] != "application/json" or "input" not in body or body["model"] != "first":
            return self._send(400, error())
        if self.headers["authorization"] not in (None, "Bearer right"):
            return self._send(401, error())
        if lacking := next((name for name in ("tools", "text", "reasoning") if body.get(name)), None):
            return self._send(400, error(lacking, "unsupported_parameter"))
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
    with serving(type("Handler", (Faulty,), {"chunks": chunks, "end": end})) as url:
        yield url


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A running server; its URL."""
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


# Two dozen answers of the chat model on a busy machine, after the start of all parts.
@pytest.mark.timeout(600)
def test_the_real_stack_is_sound(stack: LocalStack) -> None:
    command = [sys.executable, "-m", "sidecar", "verify", stack.url]
    settings = ["--model", SMOLLM2.name, "--json"]
    key = {**os.environ, "RESPONSES_API_KEY": stack.api_key}
    done = subprocess.run([*command, *settings], env=key, capture_output=True, text=True, timeout=500, check=False)
    report = json.loads(done.stdout)
    assert [result["violations"] for result in report["results"]] == [[] for _ in (*probes_for(stack.api_key), STORE)]
    # On the node surface.
    assert [result["probe"] for result in report["results"] if result["outcome"] != "ok"] == [STORE.name]
    assert report["not_supported"] == [STORE.name]
    assert report["sound"] is True
    assert done.returncode == 0


def test_a_report_to_read_has_a_line_for_each_request() -> None:
    with served(echoing(TEXT)) as url:
        done = verify(url, "--key", "right")
    probes = (*probes_for("right"), STORE)
    lines = done.stdout.splitlines()
    assert lines[0] == f"POST {url}/responses, model first"
    assert done.stdout.count("ok    ") == len(probes) - len(NEEDS_MORE)
    assert "--    a JSON schema, whole: 400, not supported (No.\ufffd[2J)" in lines
    assert lines[-2] == f"not supported: {'; '.join(NEEDS_MORE)}"
    assert lines[-1] == f"{len(probes)} probes, 0 violations, 0 warnings, {len(NEEDS_MORE)} not supported"
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
    ends = [at for at, piece in enumerate(answer.pieces, 1) if piece.ends_chunk]
    told = [b"".join(piece.data for piece in answer.pieces[at:end]) for at, end in zip([0, *ends], ends, strict=False)]
    assert (told, answer.failure) == (chunks, None)
    assert [piece.seconds for piece in answer.pieces] == sorted(piece.seconds for piece in answer.pieces)


class Page(Faulty):
    """A server of web pages."""

    def do_POST(self) -> None:
        self.close_connection = True
        self._head(200, "text/html", {"content-length": "2"})
        self.wfile.write(b"Hi")


class Shorter(Faulty):
    """An endpoint whose bodies are shorter than it announced."""

    def _send(self, status: int, document: Any) -> None:
        self.close_connection = True
        self._head(status, "application/json", {"content-length": "1000"})
        self.wfile.write(json.dumps(document).encode())


class Gone(Faulty):
    """A server that listens and says nothing that is HTTP."""

    def handle(self) -> None:
        self.wfile.write(b"SSH-2.0-\x1b[31m\r\n")
        # Whatever the client says, until it leaves.
        self.rfile.read()


@contextmanager
def nothing() -> Iterator[str]:
    """The URL of an endpoint that has ended."""
    with serving(Faulty) as url:
        pass
    yield url


@pytest.mark.parametrize(
    ("server", "path", "words"),
    [
        (nothing, "", "gives no answer: Connection refused"),
        (lambda: serving(Gone), "", "does not answer in HTTP"),
        (lambda: serving(Page), "", "is answered with an HTML page, status 200"),
        (lambda: serving(Faulty), "/elsewhere", "is answered with status 404"),
    ],
)
@pytest.mark.parametrize("settings", [(), ("--model", "first")])
def test_a_wrong_url_ends_with_status_2_and_one_sentence(
    server: Callable[[], AbstractContextManager[str]], path: str, words: str, settings: tuple[str, ...]
) -> None:
    with server() as url:
        done = verify(f"{url}{path}", *settings)
        as_json = verify(f"{url}{path}", "--json", *settings)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    # Without a model the list of models is asked for first.
    assert words in done.stderr or (not settings and "names no model" in done.stderr)
    assert (as_json.exit_code, f"error: {json.loads(as_json.stdout)['error']}\n") == (2, done.stderr)


@pytest.mark.parametrize("url", ["ftp://host", "host", "http://", "http://host:port", "http://ho st", "http://h/\x01"])
def test_what_is_no_url_ends_with_status_2(url: str) -> None:
    done = verify(url, "--model", "first")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_body_that_is_shorter_than_announced_is_told() -> None:
    with serving(Shorter) as url:
        answer = request("GET", f"{url}/models", {})
    assert answer.failure is not None
    assert answer.failure.endswith("bytes are missing")


def test_nothing_that_listens_is_no_answer() -> None:
    with nothing() as url, pytest.raises(NoAnswerError):
        request("GET", url, {})
