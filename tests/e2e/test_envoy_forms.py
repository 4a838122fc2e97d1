"""The forms of Envoy's configuration beside the local one: each is validated, and clients are served behind it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import openai
import pytest
import trustme
import yaml
from openai.types.responses import FunctionToolParam

from sidecar.config.identity import TrustedIdentity
from sidecar.config.load import load
from sidecar.envoy.derive import settings_of
from sidecar.envoy.gateway import Gateway, render_gateway
from sidecar.envoy.istio import Workload, render_istio
from sidecar.envoy.render import render, render_egress, render_existing
from sidecar.envoy.settings import EnvoySettings, Wire
from stack.envoy import Envoy, validate
from stack.local import SCRIPTED, LocalStack
from stack.net import free_port
from stack.paths import TOKENIZER, TRITON_VENV, socket_directory
from stack.triton import Ports, Triton
from stack.triton import start as start_triton
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.control_planes import envoy_gateway, istio, operator
from tests.e2e.control_planes.authentication import TRUSTED, credential
from tests.e2e.drivers import Access
from tests.e2e.ledger import LocalLedger
from tests.e2e.raw_http import exchange, request
from tests.e2e.test_envoy import settings as lone_settings
from tests.e2e.test_envoy import wait_for_sidecar
from tests.e2e.test_failures import ScriptedLog
from tests.e2e.test_generation import CALL, WEATHER

MIB = 1024 * 1024
PATH = "/v1/infer/responses"
HOST = "responses.example.com"
TRUSTED_CLAIMS = {"organization": {"claim": "org"}, "user": {"claim": "sub"}}


@dataclass(frozen=True)
class Behind:
    """A client's access, and the Envoy that it is to."""

    access: Access
    envoy: Envoy
    settings: dict[str, Any]

    def client(self, **settings: Any) -> Client:
        return Client(self.access, **self.settings, **settings)

    def sdk(self, **settings: Any) -> openai.OpenAI:
        http = openai.DefaultHttpxClient(**self.settings)
        return openai.OpenAI(base_url=self.access.url, api_key=self.access.api_key, http_client=http, **settings)


class Tritons:
    """Two with the scripted model, which keep one diary. Each can be ended and started again."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self.diary = run_dir / "diary.jsonl"
        with ThreadPoolExecutor() as starting:
            self.servers = list(starting.map(self._start, range(2)))

    @property
    def places(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", server.grpc_port) for server in self.servers]

    def start_again(self, index: int) -> None:
        self.servers[index] = self._start(index, self.servers[index].ports)

    def stop(self) -> None:
        for server in self.servers:
            server.kill()

    def _start(self, index: int, ports: Ports | None = None) -> Triton:
        run_dir = self._run_dir / str(index)
        log = self._run_dir / f"triton-{index}.log"
        models = [SCRIPTED.triton_model]
        return start_triton(
            TRITON_VENV, run_dir, models, log=log, tokenizer=TOKENIZER, ports=ports, event_log=self.diary
        )


@pytest.fixture(scope="module")
def tritons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tritons]:
    tritons = Tritons(tmp_path_factory.mktemp("tritons"))
    yield tritons
    tritons.stop()


@pytest.fixture(scope="module")
def node(tritons: Tritons, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A sidecar that relies on an operator's authentication where a route says so, and elsewhere on keys."""
    host, port = tritons.places[0]
    with LocalStack(
        tmp_path_factory.mktemp("node"),
        models=[SCRIPTED],
        triton_address=f"{host}:{port}",
        workers=1,
        sidecar_settings=TRUSTED,
    ) as stack:
        yield stack


@dataclass(frozen=True)
class Place:
    """What a form is rendered of, a directory of its own, and a key of the sidecar's."""

    settings: EnvoySettings
    run_dir: Path
    api_key: str = ""


@contextmanager
def running(settings: EnvoySettings, run_dir: Path, configuration: str) -> Iterator[Envoy]:
    """An Envoy with a configuration that Envoy itself finds valid."""
    file = run_dir / "valid.yaml"
    file.write_text(configuration)
    validate(file)
    envoy = Envoy(settings, run_dir, configuration)
    try:
        envoy.wait_ready()
        yield envoy
    finally:
        envoy.process.stop()


@contextmanager
def standalone(place: Place) -> Iterator[Behind]:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    chain, key = place.run_dir / "chain.pem", place.run_dir / "key.pem"
    for piece in certificate.cert_chain_pems:
        piece.write_to_path(chain, append=True)
    certificate.private_key_pem.write_to_path(key)
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    settings = replace(place.settings, certificate=chain, certificate_key=key)
    with running(settings, place.run_dir, render(settings)) as envoy:
        url = f"https://localhost:{settings.port}/v1/infer"
        yield Behind(Access(url, place.api_key), envoy, {"verify": trusted})


@contextmanager
def existing(place: Place) -> Iterator[Behind]:
    settings = place.settings
    merged = operator.merge(operator.before(settings), yaml.safe_load(render_existing(settings)), with_egress=True)
    with running(settings, place.run_dir, yaml.safe_dump(merged)) as envoy:
        yield behind(envoy)


@contextmanager
def egress(place: Place) -> Iterator[Behind]:
    """The same ingress without a listener of ours, and beside it an Envoy that has one."""
    beside, front = place.settings, place.run_dir / "front"
    front.mkdir()
    settings = replace(beside, sockets=socket_directory(front))
    parts = yaml.safe_load(render_existing(replace(settings, sockets=beside.sockets)))
    merged = operator.merge(operator.before(settings), parts, with_egress=False)
    with (
        running(beside, place.run_dir, render_egress(beside)),
        running(settings, front, yaml.safe_dump(merged)) as envoy,
    ):
        yield behind(envoy)


@contextmanager
def in_istio(place: Place) -> Iterator[Behind]:
    settings = place.settings
    (envoy_filter,) = yaml.safe_load_all(render_istio(settings, Workload()))
    patched = istio.apply(istio.before(settings), envoy_filter)
    with running(settings, place.run_dir, yaml.safe_dump(patched)) as envoy:
        yield behind(envoy)


@contextmanager
def in_envoy_gateway(place: Place) -> Iterator[Behind]:
    settings = place.settings
    documents = list(yaml.safe_load_all(render_gateway(settings, Gateway(HOST))))
    with running(settings, place.run_dir, yaml.safe_dump(envoy_gateway.translate(settings, documents))) as envoy:
        yield replace(behind(envoy), settings={"headers": {"host": HOST}})


def behind(envoy: Envoy) -> Behind:
    """Access with a token of the operator's own."""
    return Behind(Access(f"http://127.0.0.1:{envoy.settings.port}/v1/infer", credential()), envoy, {})


FORMS: dict[str, Callable[[Place], AbstractContextManager[Behind]]] = {
    "standalone": standalone,
    "existing": existing,
    "egress": egress,
    "istio": in_istio,
    "envoy-gateway": in_envoy_gateway,
}
OWN_AUTHENTICATION = ["existing", "egress", "istio", "envoy-gateway"]


@pytest.fixture(scope="module")
def forms(node: LocalStack, tritons: Tritons, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Behind]]:
    """An Envoy of each form, all before the same sidecar, with a port and sockets of its own."""
    config = load(node.sidecar.config)

    def place(run_dir: Path) -> Place:
        settings = settings_of(config, free_port(), run_dir / "access.log", triton=tritons.places)
        return Place(replace(settings, sockets=socket_directory(run_dir)), run_dir, node.api_key)

    with ExitStack() as started:
        running = {
            name: started.enter_context(form(place(tmp_path_factory.mktemp(name)))) for name, form in FORMS.items()
        }
        for one in running.values():
            wait_for_sidecar(one.envoy)
        yield running


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, forms: dict[str, Behind]) -> Behind:
    return forms[request.param]


@pytest.fixture
async def client(form: Behind) -> AsyncIterator[Client]:
    async with form.client() as client:
        yield client


def test_the_sdk_has_answers_streams_and_calls(form: Behind) -> None:
    with form.sdk() as sdk:
        assert sdk.responses.create(**script("whole")).output_text == "whole"
        with sdk.responses.stream(**script("piece", " by ", "piece")) as stream:
            assert [event.delta for event in stream if event.type == "response.output_text.delta"] == [
                "piece",
                " by ",
                "piece",
            ]
        called = sdk.responses.create(**script(CALL), tools=[cast(FunctionToolParam, WEATHER)])
        assert [item.name for item in called.output if item.type == "function_call"] == ["get_weather"]


def test_the_sdk_is_told_what_is_wrong(form: Behind) -> None:
    with form.sdk(max_retries=0) as sdk:
        with pytest.raises(openai.NotFoundError) as unknown:
            sdk.responses.create(model="gpt-5", input="hi")
        assert unknown.value.code == "model_not_available"
        with pytest.raises(openai.AuthenticationError) as refused:
            sdk.with_options(api_key="nobody's").responses.create(**script("never"))
        assert refused.value.code == "unauthorized"
        with pytest.raises(openai.APIError, match="The model failed"):
            list(sdk.responses.create(**script("some", {"error": "boom"}), stream=True))


async def test_triton_is_told_that_a_client_has_left(client: Client, tritons: Tritons) -> None:
    log = ScriptedLog(tritons.diary)
    async with client.stream(script("some", {"hang": True})) as stream:
        await stream.until(b"output_text.delta")
    await eventually(lambda: log.events("cancelled"))


async def test_large_bodies_come_whole_and_too_large_ones_are_refused_with_the_limit(client: Client) -> None:
    body = json.dumps(script("ok")).encode()
    answer = await client.ask(body + b" " * (10 * MIB - len(body)))
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    refused = await client.ask(b" " * (10 * MIB + 1))
    assert (refused.status_code, error_of(refused)["code"]) == (413, "payload_too_large")


async def test_the_models_are_listed_and_the_document_needs_no_credential(form: Behind, client: Client) -> None:
    models = await client.http.get(f"{form.access.url}/models")
    assert [model["id"] for model in models.json()["data"]] == [SCRIPTED.name]
    document = await client.http.get(f"{form.access.url}/openapi.json", headers={"authorization": ""})
    assert (document.status_code, "paths" in document.json()) == (200, True)


async def test_both_surfaces_are_served(form: Behind, client: Client) -> None:
    base = form.access.url.removesuffix("/infer")
    document = await client.http.get(f"{base}/openapi.json", headers={"authorization": ""})
    assert (document.status_code, "/v1/responses" in document.json()["paths"]) == (200, True)
    refused = await client.http.get(f"{base}/models", headers={"authorization": ""})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
    assert refused.json()["error"]["request_id"] == refused.headers["x-request-id"]


@pytest.mark.parametrize("wire", ["direct", "origin"])
def test_an_operator_s_envoy_takes_the_other_wires(wire: Wire, tmp_path: Path) -> None:
    settings = replace(lone_settings(tmp_path, wire), trusted=TrustedIdentity.model_validate(TRUSTED_CLAIMS))
    parts = yaml.safe_load(render_existing(settings))
    file = tmp_path / "merged.yaml"
    file.write_text(yaml.safe_dump(operator.merge(operator.before(settings), parts, with_egress=True)))
    validate(file)


@pytest.mark.parametrize("name", ["existing", "envoy-gateway"])
async def test_a_sidecar_that_is_not_there_is_told_in_the_shape_of_the_api(name: str, tmp_path: Path) -> None:
    with FORMS[name](Place(lone_settings(tmp_path, "tunnel"), tmp_path)) as form:
        async with form.client() as client:
            answer = await client.ask(script("never"))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "node_unavailable")


@pytest.mark.parametrize("form", OWN_AUTHENTICATION, indirect=True)
async def test_only_the_operator_s_authentication_says_who_a_request_is_from(form: Behind, node: LocalStack) -> None:
    async with form.client() as client:
        for credential_ in ("", f"Bearer {node.api_key}"):
            headers = {"authorization": credential_, "x-tenant": "acme", "x-responses-organization": "acme"}
            answer = await client.ask(script("never"), **headers)
            assert (answer.status_code, error_of(answer)["code"]) == (401, "unauthorized")
        answer = await client.ask(script("mine"), **{"x-tenant": "other", "x-responses-organization": "other"})
    record = await LocalLedger(node).record(answer.headers["x-request-id"])
    assert record["organization_id"] == "acme"


def test_the_operator_s_own_service_and_errors_stay(forms: dict[str, Behind]) -> None:
    port = forms["existing"].envoy.settings.port
    token = forms["existing"].access.api_key
    own = exchange(port, [request("GET", operator.OWN_PATH, key=token)])
    assert (own.status, own.body) == (200, b"open")
    for path, key in ((operator.OWN_PATH, None), ("/nowhere", token)):
        refused = exchange(port, [request("GET", path, key=key)])
        assert (refused.status, refused.body) in {(401, b"sorry"), (404, b"sorry")}


async def test_an_operator_s_shorter_timeout_cuts_no_answer(forms: dict[str, Behind]) -> None:
    async with forms["existing"].client() as client:
        events = await client.events(script("slow", {"sleep": 2}, " but whole"))
    assert events[-1].type == "response.completed"


async def test_clients_of_a_standalone_node_choose_their_version_of_http(forms: dict[str, Behind]) -> None:
    for http2, version in ((True, "HTTP/2"), (False, "HTTP/1.1")):
        async with forms["standalone"].client(http2=http2) as client:
            answer = await client.ask(script("ok"))
        assert (answer.status_code, answer.http_version) == (200, version)


class Load:
    """Developers who ask again and again, through the SDK as it is; what came of it."""

    def __init__(self, form: Behind) -> None:
        http = openai.DefaultAsyncHttpxClient(**form.settings)
        self._sdk = openai.AsyncOpenAI(base_url=form.access.url, api_key=form.access.api_key, http_client=http)
        self.whole = 0
        self.broken: list[str] = []

    async def ask_on(self) -> None:
        while True:
            text = ""
            try:
                async with self._sdk.responses.stream(**script({"repeat": [30, "word ", 0.02]})) as stream:
                    async for event in stream:
                        text += event.delta if event.type == "response.output_text.delta" else ""
            except openai.APIError as error:
                assert text, f"failed before its first word: {error}"
                self.broken.append(str(error))
            else:
                assert text == "word " * 30
                self.whole += 1

    @asynccontextmanager
    async def going_on(self, developers: int) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.ask_on()) for _ in range(developers)]
            yield
            for task in tasks:
                task.cancel()
        await self._sdk.close()

    async def goes_on(self) -> None:
        """Wait until a while's answers have been whole."""
        before = self.whole
        await eventually(lambda: self.whole >= before + 16, 60)


async def test_of_two_tritons_one_is_killed_and_the_other_drained(forms: dict[str, Behind], tritons: Tritons) -> None:
    form = forms["standalone"]
    healthy = "cluster.triton.membership_healthy"
    load = Load(form)
    async with load.going_on(developers=8):
        await load.goes_on()
        tritons.servers[1].kill()
        await load.goes_on()
        # No more than were in the middle on that one.
        assert len(load.broken) <= 8
        broken = len(load.broken)
        await asyncio.to_thread(tritons.start_again, 1)
        await eventually(lambda: form.envoy.stats(healthy)[healthy] == 2, 30)
        await load.goes_on()
        await asyncio.to_thread(tritons.servers[0].stop)
        await load.goes_on()
        assert len(load.broken) == broken
    await asyncio.to_thread(tritons.start_again, 0)
