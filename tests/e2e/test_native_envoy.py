"""Envoy's way to upstreams that speak the Responses API: whom it trusts, what it sends, and what it says itself."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from sidecar.config.upstreams import UpstreamConfig
from sidecar.envoy.settings import EnvoySettings
from stack.envoy import Envoy
from stack.native.server import Upstream
from stack.net import UnixHTTPConnection, free_port
from stack.paths import socket_directory
from stack.sidecar import worker_sockets
from tests.e2e.client import eventually

NAMES = ("named", "addressed", "stranger", "foreign", "modern", "nobody", "plain")
# Where each of them is, from the start of Envoy on.
PORTS: dict[str, int] = {}
KEY = "sk-of-the-upstream"
AUTHORITY, OTHER_AUTHORITY = trustme.CA(), trustme.CA()
# Whose certificate each server has, and for whom.
CERTIFICATES = {
    "named": AUTHORITY.issue_cert("localhost"),
    "addressed": AUTHORITY.issue_cert("127.0.0.1"),
    "stranger": AUTHORITY.issue_cert("other.example"),
    "foreign": OTHER_AUTHORITY.issue_cert("localhost"),
    "modern": AUTHORITY.issue_cert("*.localhost", "localhost"),
}
# Of the members of a request on HTTP/1.1, those that the sidecar did not send.
OWN_HEADERS = {"host", "content-length", "authorization", "content-type"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture(scope="module")
def envoy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    """Envoy alone, with an upstream of each kind."""
    run_dir = tmp_path_factory.mktemp("native-envoy")
    PORTS.update((name, free_port()) for name in NAMES)
    AUTHORITY.cert_pem.write_to_path(str(run_dir / "ca.pem"))

    def url(name: str) -> str:
        scheme = "https" if name in CERTIFICATES else "http"
        return f"{scheme}://{'127.0.0.1' if name == 'addressed' else 'localhost'}:{PORTS[name]}/v1"

    sockets = socket_directory(run_dir)
    settings = EnvoySettings(
        port=free_port(),
        sockets=sockets,
        worker_sockets=worker_sockets(sockets, 1),
        triton=[("127.0.0.1", free_port())],
        log_path=run_dir / "access.log",
        upstreams=[
            UpstreamConfig(name=name, url=url(name), ca_file=run_dir / "ca.pem" if name in CERTIFICATES else None)
            for name in PORTS
        ],
    )
    envoy = Envoy(settings, run_dir)
    try:
        envoy.wait_ready()
        yield envoy
    finally:
        envoy.process.stop()


def call(envoy: Envoy, name: str, body: bytes = b'{"input": "Hi"}', path: str = "/v1/responses") -> Answer:
    """One call as the sidecar makes it."""
    connection = UnixHTTPConnection(envoy.settings.egress_socket, timeout=20)
    headers = {"host": f"native.{name}", "authorization": f"Bearer {KEY}", "content-type": "application/json"}
    connection.putrequest("POST", path, skip_host=True, skip_accept_encoding=True)
    for header, value in {**headers, "content-length": str(len(body))}.items():
        connection.putheader(header, value)
    connection.endheaders(body)
    answer: HTTPResponse = connection.getresponse()
    try:
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


@asynccontextmanager
async def serving(name: str, log: Path) -> AsyncIterator[None]:
    """The scripted upstream in the place of ``name``."""
    tls = None
    if name in CERTIFICATES:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        CERTIFICATES[name].configure_cert(tls)
    server = await Upstream(KEY, log).serve(PORTS[name], tls)
    async with server:
        yield


def requests(log: Path) -> list[dict[str, Any]]:
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    return [note for note in notes if "path" in note]


@pytest.mark.parametrize("name", ["named", "addressed", "plain"])
async def test_an_upstream_gets_what_the_sidecar_sends_and_nothing_of_envoy_s(
    envoy: Envoy, tmp_path: Path, name: str
) -> None:
    async with serving(name, tmp_path / "log"):
        answer = await asyncio.to_thread(call, envoy, name)
    assert answer.status == 200
    assert "x-local-reply" not in answer.headers
    (request,) = requests(tmp_path / "log")
    headers = {header.lower(): value for header, value in request["headers"]}
    assert headers.keys() == OWN_HEADERS
    assert headers["host"] == f"{'127.0.0.1' if name == 'addressed' else 'localhost'}:{PORTS[name]}"
    assert (request["path"], headers["authorization"]) == ("/v1/responses", f"Bearer {KEY}")


@pytest.mark.parametrize("name", ["stranger", "foreign"])
async def test_whose_certificate_is_another_s_is_sent_nothing(envoy: Envoy, tmp_path: Path, name: str) -> None:
    async with serving(name, tmp_path / "log"):
        answer = await asyncio.to_thread(call, envoy, name)
    assert answer.status == 503
    assert answer.headers["x-local-reply"] == "UF"
    assert requests(tmp_path / "log") == []


async def test_one_that_is_not_there_is_soon_known_to_be_down_and_asked_again_later(
    envoy: Envoy, tmp_path: Path
) -> None:
    async def said() -> str:
        answer = await asyncio.to_thread(call, envoy, "nobody")
        return answer.headers.get("x-local-reply", str(answer.status))

    assert await said() == "UF"
    async with asyncio.timeout(10):
        while await said() != "UH":
            pass
    async with serving("nobody", tmp_path / "log"), asyncio.timeout(20):
        while await said() != "200":
            await asyncio.sleep(0.1)


async def test_what_an_upstream_says_is_not_taken_for_envoy_s_word(envoy: Envoy, tmp_path: Path) -> None:
    other = {"http": {"status": 503, "headers": {"x-local-reply": "UF"}, "body": "busy"}}
    body = json.dumps({"input": f"script:{json.dumps([other])}"}).encode()
    async with serving("plain", tmp_path / "log"):
        answer = await asyncio.to_thread(call, envoy, "plain", body)
        assert (answer.status, answer.body) == (503, b"busy")
        assert "x-local-reply" not in answer.headers
        closed = json.dumps({"input": 'script:[{"break": "reset"}]'}).encode()
        assert (await asyncio.to_thread(call, envoy, "plain", closed)).headers["x-local-reply"] == "UC"
        elsewhere = await asyncio.to_thread(call, envoy, "plain", path="/v1/files")
        assert (elsewhere.status, elsewhere.headers["x-local-reply"]) == (404, "NR")
    # Nothing is sent a second time.
    assert [request["path"] for request in requests(tmp_path / "log")] == ["/v1/responses", "/v1/responses"]


class Modern(asyncio.Protocol):
    """An HTTP/2 server of one answer; ``seen`` are the headers of requests."""

    seen: list[dict[str, str]]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        configuration = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self._http = h2.connection.H2Connection(configuration)
        self._http.initiate_connection()
        transport.write(self._http.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._http.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.seen.append({str(name): str(value) for name, value in event.headers})
            elif isinstance(event, h2.events.StreamEnded):
                self._http.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/json")])
                self._http.send_data(event.stream_id, b"{}", end_stream=True)
        self._transport.write(self._http.data_to_send())


async def test_http_2_is_spoken_where_it_is_offered(envoy: Envoy) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATES["modern"].configure_cert(tls)
    tls.set_alpn_protocols(["h2"])
    Modern.seen = []
    server = await asyncio.get_running_loop().create_server(Modern, "127.0.0.1", PORTS["modern"], ssl=tls)
    async with server:
        answer = await asyncio.to_thread(call, envoy, "modern")
        assert (answer.status, answer.body) == (200, b"{}")
        (seen,) = await eventually(lambda: Modern.seen)
    assert (seen[":scheme"], seen[":authority"]) == ("https", f"localhost:{PORTS['modern']}")
    assert seen["authorization"] == f"Bearer {KEY}"
