"""The status page over real HTTP: who may see what, what binds a browser, the way to Envoy, organizations' use."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sidecar.admin.app import make_app, start_admin
from sidecar.admin.route import Tools
from sidecar.admin.status.access import Access, is_loopback
from sidecar.admin.status.node import Node
from sidecar.admin.status.organizations import organizations
from sidecar.admin.status.relay import KEY_HEADER
from sidecar.admin.status.routes import add_status
from sidecar.admission.limits import Limits
from sidecar.store import Store, connect
from sidecar.surfaces import SURFACES
from stack.net import free_port
from stack.paths import ROOT
from tests.core.kit import catalog
from tests.store.ledger_kit import PRICED, Books, completed
from tests.store.listeners import authenticator, key, organization

PAGE = ROOT / "sidecar" / "admin" / "status" / "page"
DATA = "/status/data/node"
ORGANIZATIONS = "/status/data/organizations"
RELAY = "/status/relay/node"
JSON = {"content-type": "application/json"}


def node(directory: Path, **changed: Any) -> Node:
    values: dict[str, Any] = {
        "catalog": catalog,
        "surfaces": {"node": SURFACES["node"]},
        "accounts": True,
        "metrics": directory / "metrics",
        "recent": directory / "recent",
        "defaults": Limits(),
        "currency": "USD",
        "playground": None,
    }
    return Node(**{**values, **changed})


class Page:
    """A running interface and a key for it."""

    def __init__(self, http: aiohttp.ClientSession, port: int, secret: str) -> None:
        self.http = http
        self.url = f"http://127.0.0.1:{port}"
        self.secret = secret

    async def get(self, path: str = DATA, secret: str = "", **headers: str) -> tuple[int, Any]:
        """The status of an answer, and its JSON."""
        if secret:
            headers["authorization"] = f"Bearer {secret}"
        async with self.http.get(self.url + path, headers=headers, allow_redirects=False) as answer:
            self.headers = answer.headers
            return answer.status, await answer.json()

    async def code(self, path: str = DATA, **headers: str) -> str | None:
        """The code of a refusal."""
        _, body = await self.get(path, **headers)
        return body["error"]["code"] if "error" in body else None


Serve = Callable[..., Any]


@pytest.fixture
async def serve(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Serve]:
    """Serves a page; ``address`` is where it would listen, for who may see it."""
    store = Store(sqlite_url)
    acme = organization(sqlite_url, "acme")
    async with AsyncExitStack() as running:
        http = await running.enter_async_context(aiohttp.ClientSession())

        async def serve(address: str = "127.0.0.1:9101", *, accounts: bool = True, **changed: Any) -> Page:
            port, known = free_port(), authenticator(store)
            app = make_app(Tools(store, known) if accounts else None)
            access = Access(address, known if accounts else None)
            add_status(app, node(tmp_path, accounts=accounts, **changed), access, store if accounts else None)
            running.push_async_callback((await start_admin(app, f"127.0.0.1:{port}")).cleanup)
            return Page(http, port, key(sqlite_url, acme, "admin")[0])

        yield serve
    await store.close()


class Upstream:
    """Stands where Envoy does."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.go_on = asyncio.Event()
        self.left = asyncio.Event()
        self.cuts_off = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append((request.path, headers, await request.read()))
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "x-request-id": "r-1", "x-own": "1"}
        )
        await response.prepare(request)
        try:
            await response.write(b"data: 1\n\n")
            await self.go_on.wait()
            if self.cuts_off and request.transport is not None:
                request.transport.abort()
            await response.write(b"data: 2\n\n")
        except asyncio.CancelledError:
            self.left.set()
            raise
        return response


@pytest.fixture
async def upstream() -> AsyncIterator[tuple[Upstream, str]]:
    upstream, port = Upstream(), free_port()
    app = web.Application()
    app.router.add_post("/{path:.*}", upstream.answer)
    runner = await start_admin(app, f"127.0.0.1:{port}")
    yield upstream, f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:9101", True),
        ("127.8.0.1", True),
        ("localhost:9101", True),
        ("[::1]:9101", True),
        ("0.0.0.0:9101", False),
        ("10.0.0.1:9101", False),
        ("admin.example:9101", False),
        ("127.0.0.1.example:9101", False),
        ("localhost.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_what_is_this_machine(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


async def test_at_a_loopback_address_the_node_is_shown_and_no_organization(serve: Serve) -> None:
    page = await serve()
    status, body = await page.get()
    assert (status, body["node"], [model["name"] for model in body["models"]]) == (200, "n1", ["letters"])
    assert "acme" not in json.dumps(body)
    assert page.headers["cache-control"] == "no-store"
    assert await page.code(ORGANIZATIONS) == "unauthorized"
    _, found = await page.get(ORGANIZATIONS, page.secret)
    assert [one["name"] for one in found["data"]] == ["acme"]


async def test_who_comes_by_another_name_or_through_a_proxy_needs_a_key(serve: Serve) -> None:
    page = await serve()
    for headers in (
        {"host": "evil.example"},
        {"host": "evil.example:9101"},
        {"x-forwarded-for": "203.0.113.1"},
        {"forwarded": "for=203.0.113.1"},
        {"via": "1.1 proxy"},
    ):
        assert await page.code(DATA, **headers) == "unauthorized"
        assert (await page.get(DATA, page.secret, **headers))[0] == 200


async def test_elsewhere_a_key_is_needed_that_allows_it(serve: Serve, sqlite_url: str) -> None:
    page = await serve("10.0.0.1:9101", playground="http://127.0.0.1:9")
    assert await page.code() == "unauthorized"
    lesser, _ = key(sqlite_url, organization(sqlite_url, "other"), "infer:run", "usage:read")
    assert (await page.get(DATA, lesser))[1]["error"]["code"] == "forbidden"
    assert (await page.get(DATA, page.secret))[0] == 200
    async with page.http.post(page.url + RELAY, json={}) as answer:
        assert answer.status == 401


async def test_without_accounts_it_is_for_this_machine_alone(serve: Serve) -> None:
    page = await serve(accounts=False)
    assert (await page.get())[0] == 200
    assert await page.code(DATA, host="evil.example") == "forbidden"
    assert await page.code(ORGANIZATIONS) == "forbidden"


async def test_the_page_and_all_its_files_are_served_with_a_strict_policy(serve: Serve) -> None:
    page = await serve()
    served = {"": "text/html", "page.css": "text/css", "main.js": "text/javascript", "icon.svg": "image/svg+xml"}
    for name, kind in served.items():
        async with page.http.get(f"{page.url}/status/{name}") as answer:
            assert (answer.status, answer.content_type) == (200, kind)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/", "/status"):
        async with page.http.get(page.url + path) as answer:
            assert (answer.url.path, answer.status) == ("/status/", 200)
    assert await page.code("/status/nothing.js") == "not_found"
    assert await page.code("/status/..%2foverview.py") == "not_found"


def test_the_page_runs_nothing_inline_and_loads_nothing_from_elsewhere() -> None:
    files = {path.name: path.read_text() for path in PAGE.iterdir()}
    html = files["index.html"]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)
    assert set(re.findall(r'(?:src|href)="([^"#]+)"', html)) <= files.keys()
    assert set(re.findall(r'from "\./([^"]+)"', "".join(files.values()))) <= files.keys()
    code = "".join(text for name, text in files.items() if name.endswith(".js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Storage|cookie", code)


async def test_the_relay_goes_to_the_surface_with_the_key_that_is_typed(
    serve: Serve, upstream: tuple[Upstream, str]
) -> None:
    envoy, url = upstream
    page = await serve(playground=url)
    headers = {**JSON, KEY_HEADER: "b3os_sk_1", "authorization": "Bearer mine", "cookie": "a=b", "x-other": "1"}
    async with page.http.post(page.url + RELAY, data=b'{"a": 1}', headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        assert answer.headers["x-request-id"] == "r-1"
        assert "x-own" not in answer.headers
        # It comes as it comes.
        assert await answer.content.readuntil(b"\n\n") == b"data: 1\n\n"
        envoy.go_on.set()
        assert await answer.content.read() == b"data: 2\n\n"
    ((path, seen, body),) = envoy.seen
    assert (path, body) == ("/v1/infer/responses", b'{"a": 1}')
    assert seen["authorization"] == "Bearer b3os_sk_1"
    assert not seen.keys() & {"cookie", "x-other", KEY_HEADER}


async def test_the_relay_is_for_the_page_alone(serve: Serve, upstream: tuple[Upstream, str]) -> None:
    envoy, url = upstream
    page = await serve(playground=url)
    for status, headers in (
        (403, {**JSON, "sec-fetch-site": "cross-site", "origin": "https://evil.example"}),
        (403, {**JSON, "sec-fetch-site": "same-site"}),
        (403, {**JSON, "origin": "http://evil.example"}),
        (403, {**JSON, "origin": "null"}),
        (401, {**JSON, "host": "evil.example", "sec-fetch-site": "same-origin"}),
        (415, {"content-type": "text/plain", "sec-fetch-site": "same-origin"}),
    ):
        async with page.http.post(page.url + RELAY, data=b"{}", headers=headers) as answer:
            assert answer.status == status, headers
            assert "access-control-allow-origin" not in answer.headers
    assert envoy.seen == []


async def test_an_answer_ends_with_the_page_that_asked(serve: Serve, upstream: tuple[Upstream, str]) -> None:
    envoy, url = upstream
    page = await serve(playground=url)
    async with page.http.post(page.url + RELAY, json={}) as answer:
        await answer.content.readuntil(b"\n\n")
        answer.close()
    await asyncio.wait_for(envoy.left.wait(), 10)


async def test_an_answer_that_is_cut_off_does_not_look_whole(serve: Serve, upstream: tuple[Upstream, str]) -> None:
    envoy, url = upstream
    envoy.cuts_off = True
    page = await serve(playground=url)
    async with page.http.post(page.url + RELAY, json={}) as answer:
        assert await answer.content.readuntil(b"\n\n") == b"data: 1\n\n"
        envoy.go_on.set()
        with pytest.raises(aiohttp.ClientError):
            await answer.content.read()


async def test_what_cannot_be_reached(serve: Serve) -> None:
    page = await serve(playground=f"http://127.0.0.1:{free_port()}")
    async with page.http.post(page.url + RELAY, json={}) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (503, "node_unavailable")
    async with page.http.post(f"{page.url}/status/relay/other", json={}) as answer:
        assert answer.status == 404
    without = await serve()
    async with page.http.post(without.url + RELAY, json={}) as answer:
        assert answer.status == 404


def test_limits_and_their_use(store_url: str, tmp_path: Path) -> None:
    acme, other = organization(store_url, "acme"), organization(store_url, "other")
    defaults = Limits(
        requests_per_minute=10, tokens_per_minute=300, concurrent_requests=4, period="month", period_tokens=5000
    )
    books = Books(store_url, defaults, PRICED)
    settled = books.admit(organization_id=acme, model="letters")
    books.book(completed(settled.id, output_tokens=30))
    books.admit(organization_id=acme, model="letters")
    of = node(tmp_path, defaults=defaults)
    with connect(store_url) as connection:
        first, second = organizations(connection, of, "")["data"]
        (left,) = organizations(connection, of, "acme")["data"]
    assert (first["name"], second["name"], left) == ("acme", "other", second)
    assert first["hour"] == {"requests": 1, "input_tokens": 10, "output_tokens": 30}
    used = {(limit["kind"], limit["model"]): (limit["used"], limit["limit"]) for limit in first["limits"]}
    # One of the two is under way: 10 tokens in and 90 that it may write.
    assert used[("concurrent", "*")] == (1, 4)
    assert used[("requests", "letters")] == (2, 10)
    # The minute's tokens come back by and by.
    assert 100 < used[("tokens", "letters")][0] <= 140
    assert used[("quota", "*")] == (140, 5000)
    assert second["hour"]["requests"] == 0
    assert {limit["used"] for limit in second["limits"]} == {0}
    assert other == second["id"]


def test_organizations_come_in_pages(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.admin.status.organizations._PAGE", 2)
    for name in ("b", "a", "c"):
        organization(store_url, name)
    with connect(store_url) as connection:
        first = organizations(connection, node(tmp_path), "")
        second = organizations(connection, node(tmp_path), "b")
    assert ([one["name"] for one in first["data"]], first["has_more"]) == (["a", "b"], True)
    assert ([one["name"] for one in second["data"]], second["has_more"]) == (["c"], False)
