"""Envoy's own behaviour: what clients get when a request never reaches the sidecar, or the sidecar is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, get_args

import pytest
import yaml
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import ExternalProcessorServicer

from sidecar.config.upstreams import UpstreamConfig
from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings, Wire
from sidecar.extproc import messages
from sidecar.responses.caller import CALLER_HEADERS, Caller
from sidecar.responses.errors import CODES
from sidecar.responses.reply import Reply as SidecarReply
from stack.envoy import Envoy, validate
from stack.local import SCRIPTED, LocalStack
from stack.net import free_port
from stack.paths import socket_directory
from stack.process import StackError
from stack.sidecar import worker_sockets
from stack.triton import Triton
from tests.e2e.authorizer import KEY, Authorizer, serving
from tests.e2e.client import eventually
from tests.e2e.raw_http import Reply, exchange, request

PATH = "/v1/infer/responses"
MODELS = "/v1/infer/models"


def settings(run_dir: Path, wire: Wire) -> EnvoySettings:
    sockets = socket_directory(run_dir)
    return EnvoySettings(
        port=free_port(),
        sockets=sockets,
        worker_sockets=worker_sockets(sockets, 2),
        triton=[("127.0.0.1", free_port())],
        log_path=run_dir / "access.log",
        wire=wire,
    )


def wait_for_sidecar(envoy: Envoy) -> None:
    """Wait until Envoy has found a worker healthy; the first check may fail on a busy machine."""
    name = "cluster.sidecar.membership_healthy"
    envoy.process.wait_until(lambda: envoy.stats(name)[name] > 0, 30)


@pytest.fixture(scope="module", params=["tunnel", "direct"])
def lone_envoy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    """Envoy without a Triton, and of the sidecar only what says who a request is from."""
    run_dir = tmp_path_factory.mktemp("envoy")
    chosen = settings(run_dir, request.param)
    with serving(chosen.worker_sockets[0], Authorizer()):
        envoy = Envoy(chosen, run_dir)
        try:
            envoy.wait_ready()
            wait_for_sidecar(envoy)
            yield envoy
        finally:
            envoy.process.stop()


def ask(envoy: Envoy, *pieces: bytes) -> Reply:
    return exchange(envoy.settings.port, pieces)


@pytest.mark.parametrize("accounts", [True, False])
@pytest.mark.parametrize("wire", get_args(Wire))
def test_envoy_accepts_the_configuration(wire: Wire, accounts: bool, tmp_path: Path) -> None:
    config = tmp_path / "envoy.yaml"
    upstreams = [
        UpstreamConfig(name="far", url="https://api.example.com/v1"),
        UpstreamConfig(name="near", url="http://[::1]:8000"),
        UpstreamConfig(name="by-address", url="https://192.0.2.1:8443/v1"),
    ]
    config.write_text(render(replace(settings(tmp_path, wire), accounts=accounts, upstreams=upstreams)))
    validate(config)


@pytest.mark.parametrize("wire", get_args(Wire))
def test_every_breaker_is_raised_and_every_cluster_notices_health_at_once(wire: Wire, tmp_path: Path) -> None:
    for cluster in yaml.safe_load(render(settings(tmp_path, wire)))["static_resources"]["clusters"]:
        (threshold,) = cluster["circuit_breakers"]["thresholds"]
        assert min(threshold.values()) >= 1000, cluster["name"]
        if "health_checks" in cluster:
            lb = cluster["common_lb_config"]
            assert lb == {"update_merge_window": "0s", "healthy_panic_threshold": {"value": 0}}, cluster["name"]


ERRORS = {
    "no key": (request("POST", PATH, body=b"{}"), 401, "unauthorized"),
    "wrong key": (request("POST", PATH, key="b3os_sk_other", body=b"{}"), 401, "unauthorized"),
    "no key, unknown path": (request("GET", "/v1/models"), 401, "unauthorized"),
    "unknown path": (request("GET", "/v1/models", key=KEY), 404, "not_found"),
    "path with a tail": (request("POST", f"{PATH}/x", key=KEY, body=b"{}"), 404, "not_found"),
    "GET": (request("GET", PATH, key=KEY), 405, "method_not_allowed"),
    "DELETE": (request("DELETE", PATH, key=KEY), 405, "method_not_allowed"),
    "POST to the models": (request("POST", f"{MODELS}/x", key=KEY, body=b"{}"), 405, "method_not_allowed"),
    "models without a key": (request("GET", MODELS), 401, "unauthorized"),
    "models, no sidecar": (request("GET", f"{MODELS}/b3os%2Fx", key=KEY), 503, "node_unavailable"),
    "OpenAPI document, no sidecar": (request("GET", "/v1/infer/openapi.json"), 503, "node_unavailable"),
    "too long by its Content-Length": (
        request("POST", PATH, key=KEY, headers=["Content-Length: 41943041"]),
        413,
        "payload_too_large",
    ),
    "GET, upgrade": (
        request("GET", PATH, key=KEY, headers=["Connection: upgrade", "Upgrade: websocket"]),
        405,
        "method_not_allowed",
    ),
    "POST, upgrade, no sidecar": (
        request("POST", PATH, key=KEY, headers=["Connection: upgrade", "Upgrade: foo"], body=b"{}"),
        503,
        "node_unavailable",
    ),
    "unknown Transfer-Encoding": (
        request("POST", PATH, key=KEY, headers=["Transfer-Encoding: xchunked"]),
        400,
        "invalid_request",
    ),
    "gRPC": (
        request("POST", PATH, key=KEY, headers=["Content-Type: application/grpc"], body=b"{}"),
        415,
        "unsupported_media_type",
    ),
    "gRPC with a message format": (
        request("POST", PATH, key=KEY, headers=["Content-Type: application/grpc+proto"], body=b"{}"),
        415,
        "unsupported_media_type",
    ),
    "gRPC without a key": (
        request("POST", PATH, headers=["Content-Type: application/grpc"], body=b"{}"),
        401,
        "unauthorized",
    ),
    "gRPC, too long by its Content-Length": (
        request("POST", PATH, key=KEY, headers=["Content-Type: application/grpc", "Content-Length: 41943041"]),
        413,
        "payload_too_large",
    ),
    "no HTTP": (b"nonsense\r\n\r\n", 400, "invalid_request"),
    "no host": (f"POST {PATH} HTTP/1.1\r\n\r\n".encode(), 400, "invalid_request"),
    "two lengths": (
        request("POST", PATH, key=KEY, headers=["Content-Length: 2", "Content-Length: 3"], body=b"{}"),
        400,
        "invalid_request",
    ),
    "huge header": (request("POST", PATH, key=KEY, headers=["X-Filler: " + "x" * 100_000]), 431, "invalid_request"),
    "no sidecar": (request("POST", PATH, key=KEY, body=b"{}"), 503, "node_unavailable"),
}


@pytest.mark.parametrize(("sent", "status", "code"), ERRORS.values(), ids=ERRORS)
def test_errors_of_envoy_have_the_shape_of_the_api(lone_envoy: Envoy, sent: bytes, status: int, code: str) -> None:
    reply = ask(lone_envoy, sent)
    error = reply.error()
    assert (reply.status, error["code"], error["type"], error["param"]) == (status, code, CODES[code].type, None)
    advice = CODES[code].retry_after
    assert reply.headers.get("retry-after") == (None if advice is None else str(advice))


@pytest.mark.parametrize(("method", "path", "allowed"), [("GET", PATH, "POST"), ("PUT", MODELS, "GET")])
def test_a_wrong_method_is_told_the_right_one(lone_envoy: Envoy, method: str, path: str, allowed: str) -> None:
    assert ask(lone_envoy, request(method, path, key=KEY)).headers["allow"] == allowed


def test_a_body_that_is_too_long_is_told_its_size_and_the_limit(lone_envoy: Envoy) -> None:
    reply = ask(lone_envoy, request("POST", PATH, key=KEY, headers=["Content-Length: 99999999"]))
    assert reply.error()["message"] == "Request body is 99999999 bytes; this node accepts at most 41943040"


def test_a_second_envoy_does_not_share_the_port(lone_envoy: Envoy, tmp_path: Path) -> None:
    taken = replace(settings(tmp_path, "direct"), port=lone_envoy.settings.port)
    second = Envoy(taken, tmp_path)
    try:
        with pytest.raises(StackError, match="Address already in use"):
            second.wait_ready()
    finally:
        second.process.stop()


def test_health_needs_no_key(lone_envoy: Envoy) -> None:
    reply = ask(lone_envoy, request("GET", "/healthz"))
    assert (reply.status, reply.body) == (200, b"ok")
    assert reply.headers["x-request-id"]


def test_a_request_id_of_the_client_is_replaced(lone_envoy: Envoy) -> None:
    sent = request("GET", "/healthz", headers=["X-Request-Id: mine"])
    assert ask(lone_envoy, sent).headers["x-request-id"] != "mine"


async def test_a_connection_outlives_an_error(lone_envoy: Envoy) -> None:
    active = "http.ingress.downstream_rq_active"
    twice = request("GET", "/v1/models", key=KEY) + request("GET", "/healthz", headers=["Connection: close"])
    assert ask(lone_envoy, twice).status == 404
    await eventually(lambda: not lone_envoy.stats(active)[active])


def test_a_body_of_unknown_length_is_refused_once_it_is_too_long(stack: LocalStack) -> None:
    head = request(
        "POST", PATH, key=stack.api_key, headers=["Transfer-Encoding: chunked", "Content-Type: application/json"]
    )
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    reply = exchange(stack.port, [head, *[chunk] * 41, b"0\r\n\r\n"])
    assert (reply.status, reply.error()["code"]) == (413, "payload_too_large")
    assert reply.error()["message"] == "The request body is larger than 41943040 bytes."


@pytest.fixture(params=["stack", "direct_stack", "origin_stack"])
def either_stack(request: pytest.FixtureRequest) -> LocalStack:
    """A stack on each wire."""
    found: LocalStack = request.getfixturevalue(request.param)
    return found


def create(stack: LocalStack, *headers: str, key: str | None = None, **body: Any) -> Reply:
    """Ask the scripted model."""
    lines = ["Content-Type: application/json", *headers]
    content = json.dumps({"model": "scripted", "input": "Hello", **body}).encode()
    return exchange(stack.port, [request("POST", PATH, key=key or stack.api_key, headers=lines, body=content)])


def test_an_upgrade_that_a_client_offers_is_ignored(either_stack: LocalStack) -> None:
    reply = create(either_stack, "Connection: upgrade", "Upgrade: foo")
    assert (reply.status, reply.json()["status"]) == (200, "completed")


def test_envoy_rejects_no_header_mutation(either_stack: LocalStack) -> None:
    foreign = ["X-Envoy-Upstream-Rq-Timeout-Ms: 1", "X-Forwarded-For: 192.0.2.1", "Grpc-Timeout: 1m", "TE: trailers"]
    assert create(either_stack, *foreign).status == 200
    assert create(either_stack, *foreign, stream=True).status == 200
    assert create(either_stack, *foreign, temperature=3).status == 400
    assert create(either_stack, *foreign, input='script:[{"error": "no"}]').status == 503
    assert create(either_stack, *foreign, key="b3os_sk_other").status == 401
    rejected = either_stack.envoy.stats("http.ingress.ext_proc.rejected_header_mutations")
    assert list(rejected.values()) == [0]


def test_no_key_is_401_while_the_sidecar_runs(own_stack: LocalStack) -> None:
    sent = request("POST", PATH, body=b"{}")
    assert exchange(own_stack.port, [sent]).status == 401
    own_stack.sidecar.process.kill()
    reply = exchange(own_stack.port, [sent])
    assert (reply.status, reply.error()["code"]) == (503, "node_unavailable")
    reply = exchange(own_stack.port, [request("POST", PATH, key=own_stack.api_key, body=b"{}")])
    assert (reply.status, reply.error()["code"]) == (503, "node_unavailable")


def test_without_accounts_nobody_is_asked_and_nothing_is_kept(triton: Triton, tmp_path: Path) -> None:
    with LocalStack(
        tmp_path, models=[SCRIPTED], triton_address=f"127.0.0.1:{triton.grpc_port}", accounts=False
    ) as stack:
        body = json.dumps({"model": SCRIPTED.name, "input": "Hello"}).encode()
        reply = exchange(stack.port, [request("POST", PATH, headers=["Content-Type: application/json"], body=body)])
        assert reply.status == 200
        assert reply.json()["status"] == "completed"
        assert not {name for name in reply.headers if name.startswith("x-ratelimit")}
        assert not list(tmp_path.rglob("ledger.db*")) and not list(tmp_path.rglob("*.slots"))


def test_the_stack_answers_again_when_the_sidecar_is_back(own_stack: LocalStack) -> None:
    own_stack.sidecar.process.kill()
    own_stack.start_sidecar()
    own_stack.wait_until_answering()


class Recorder(ExternalProcessorServicer):  # type: ignore[misc]
    """A sidecar that keeps the head of every request, and refuses it."""

    def __init__(self) -> None:
        self.heads = SimpleQueue[ProcessingRequest]()

    def Process(self, requests: Iterator[ProcessingRequest], _context: object) -> Iterator[ProcessingResponse]:
        self.heads.put(next(requests))
        yield messages.immediate(SidecarReply(418, {}, b"", "recorded"))


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[tuple[Envoy, Recorder]]:
    """Envoy before a sidecar that refuses every request, once it has let it in."""
    recorder, chosen = Recorder(), settings(tmp_path, "tunnel")
    with serving(chosen.worker_sockets[0], Authorizer(), recorder):
        envoy = Envoy(chosen, tmp_path)
        try:
            envoy.wait_ready()
            wait_for_sidecar(envoy)
            yield envoy, recorder
        finally:
            envoy.process.stop()


def heads(recorder: Recorder, count: int) -> list[ProcessingRequest]:
    return [recorder.heads.get(timeout=10) for _ in range(count)]


def test_the_sidecar_is_told_the_client_s_name_and_its_connection(recording: tuple[Envoy, Recorder]) -> None:
    envoy, recorder = recording
    for _ in range(2):
        assert ask(envoy, request("POST", PATH, key=KEY, body=b"{}")).status == 418
    seen = heads(recorder, 2)
    assert {Caller.of(messages.headers_of(head.request_headers.headers)) for head in seen} == {Caller("org_1", "key_1")}
    first, second = map(messages.connection_of, seen)
    assert 0 not in (first, second)
    assert first != second


def test_a_sidecar_that_is_slow_to_let_a_request_in_is_waited_for(tmp_path: Path) -> None:
    recorder, authorizer, chosen = Recorder(), Authorizer(delay=1.0), settings(tmp_path, "tunnel")
    with serving(chosen.worker_sockets[0], authorizer, recorder):
        envoy = Envoy(chosen, tmp_path)
        try:
            envoy.wait_ready()
            wait_for_sidecar(envoy)
            assert ask(envoy, request("POST", PATH, key=KEY, body=b"{}")).status == 418
            assert authorizer.asked == 1
        finally:
            envoy.process.stop()


FORGED = [f"{name}: forged" for name in (*CALLER_HEADERS, "X-Responses-Key", "X-RESPONSES-USER")]


def test_no_client_says_itself_who_it_is(recording: tuple[Envoy, Recorder]) -> None:
    envoy, recorder = recording
    cookie = "Cookie: theme=dark"
    assert ask(envoy, request("POST", PATH, key=KEY, headers=[*FORGED, *FORGED, cookie], body=b"{}")).status == 418
    # Where nobody is asked who it is.
    assert ask(envoy, request("GET", "/v1/infer/openapi.json", headers=FORGED)).status == 418
    known, unknown = (messages.headers_of(head.request_headers.headers) for head in heads(recorder, 2))
    assert Caller.of(known) == Caller("org_1", "key_1")
    assert Caller.of(unknown) == Caller()
    assert not {"authorization", "cookie"} & known.keys()
    assert "forged" not in str([known, unknown])


def test_without_a_sidecar_nobody_is_let_in(tmp_path: Path) -> None:
    envoy = Envoy(settings(tmp_path, "tunnel"), tmp_path)
    try:
        envoy.wait_ready()
        for sent in (request("POST", PATH, key=KEY, body=b"{}"), request("GET", MODELS), request("GET", "/none")):
            reply = ask(envoy, sent)
            assert (reply.status, reply.error()["code"]) == (503, "node_unavailable")
            assert reply.headers["retry-after"] == "5"
        assert ask(envoy, request("GET", "/healthz")).status == 200
    finally:
        envoy.process.stop()
