"""Guarded fetches against a real server: only what was checked is connected to, and never too much is taken."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import trustme

from sidecar.config.models import ImageLimits
from sidecar.egress.budget import UnlimitedBytes
from sidecar.egress.fetch import INTERNET, Fetcher, Network
from sidecar.egress.guard import Address, is_public
from sidecar.responses.errors import ApiError
from tests.egress.web import LOOPBACK, Answer, Resolver, Web, answer, client_tls, redirect, server_tls, web

NAME = "images.example"
CONTENT = b"what an image holds"
AUTHORITY = trustme.CA()
LIMITS = ImageLimits(allow_http=True, max_bytes=1000, timeout=20.0)


def allows(address: Address) -> bool:
    return str(address) == LOOPBACK or is_public(address)


class Visit:
    """A fetcher in a network where ``NAME`` is the server ``site``."""

    def __init__(self, site: Web, table: Mapping[str, Sequence[Sequence[str]]] | None = None, **limits: Any) -> None:
        self.limits = LIMITS.model_copy(update={"ports": (site.port, 443), **limits})
        self.resolver = Resolver(table or {NAME: [[LOOPBACK]]})
        self.network = Network(allows, self.resolver, client_tls(AUTHORITY))

    async def fetch(self, url: str) -> bytes:
        async with Fetcher(self.limits, self.network) as fetcher:
            return await fetcher.fetch(url, UnlimitedBytes())

    async def refused(self, url: str) -> ApiError:
        with pytest.raises(ApiError) as raised:
            await self.fetch(url)
        assert NAME not in raised.value.message
        return raised.value


async def refusal(response: Answer, **limits: Any) -> ApiError:
    """How a fetch fails that is given ``response``."""
    async with web({"/": response}) as site:
        return await Visit(site, **limits).refused(f"http://{NAME}:{site.port}/?secret")


async def test_the_name_is_in_tls_and_host_and_its_address_is_connected_to() -> None:
    async with web({"/cat": answer(CONTENT)}, tls=server_tls(AUTHORITY, NAME)) as site:
        visit = Visit(site)
        assert await visit.fetch(f"https://{NAME}:{site.port}/cat?size=1") == CONTENT
    assert site.server_names == [NAME]
    assert visit.resolver.asked == [NAME]
    (head,) = site.requests
    line, *fields = head.lower().split("\r\n")
    assert line == "get /cat?size=1 http/1.1"
    sent = {field.partition(":")[0] for field in fields if field}
    assert sent == {"host", "accept", "accept-encoding", "user-agent", "connection"}
    assert f"host: {NAME}:{site.port}" in fields
    assert "accept-encoding: identity" in fields


@pytest.mark.parametrize("environment", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_no_proxy_is_taken_from_the_environment(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment, "http://127.0.0.1:1")
    async with web({"/": answer(CONTENT)}) as site:
        assert await Visit(site).fetch(f"http://{NAME}:{site.port}/") == CONTENT


@pytest.mark.parametrize("certificate", ["another.example", None])
async def test_a_server_that_is_not_who_it_says_is_not_read(certificate: str | None) -> None:
    tls = server_tls(AUTHORITY, certificate) if certificate else server_tls(trustme.CA(), NAME)
    async with web({"/": answer(CONTENT)}, tls=tls) as site:
        error = await Visit(site).refused(f"https://{NAME}:{site.port}/")
    assert error.code == "invalid_request"
    assert site.requests == []


@pytest.mark.parametrize("host", [LOOPBACK, "[::1]", "[::ffff:127.0.0.1]", NAME])
async def test_by_default_nothing_on_this_machine_is_reached(host: str) -> None:
    async with web({"/": answer(CONTENT)}) as site:
        visit = Visit(site)
        visit.network = replace(INTERNET, resolver=visit.resolver)
        error = await visit.refused(f"http://{host}:{site.port}/")
    assert (error.code, error.status) == ("egress_denied", 403)
    assert site.requests == []


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], [LOOPBACK, "10.0.0.1"], [LOOPBACK, "fe80::1"], [LOOPBACK, "::ffff:10.0.0.1"], []]
)
async def test_a_name_with_one_closed_address_is_refused(addresses: list[str]) -> None:
    async with web({"/": answer(CONTENT)}) as site:
        error = await Visit(site, {NAME: [addresses]}).refused(f"http://{NAME}:{site.port}/")
    assert error.code == "egress_denied"
    assert site.requests == []


async def test_a_name_that_does_not_exist_looks_like_one_with_a_closed_address() -> None:
    async with web({}) as site:
        unknown = await Visit(site).refused(f"http://unknown.example:{site.port}/")
        closed = await Visit(site, {NAME: [["10.0.0.1"]]}).refused(f"http://{NAME}:{site.port}/")
    assert unknown.fields() == closed.fields()


async def test_a_name_that_moves_to_a_closed_address_is_followed_no_further() -> None:
    async with (
        web({"/": redirect("/again"), "/again": answer(b"of the right host")}) as site,
        web({"/again": answer(b"of the wrong host")}, address="127.0.0.2", port=site.port) as inside,
    ):
        visit = Visit(site, {NAME: [[LOOPBACK], ["127.0.0.2"]]})
        assert (await visit.refused(f"http://{NAME}:{site.port}/")).code == "egress_denied"
    assert visit.resolver.asked == [NAME, NAME]
    assert len(site.requests) == 1
    assert inside.requests == []


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_three_redirects_are_followed(status: str) -> None:
    answers = {
        "/1": redirect("2", status),
        "/2": redirect("/3?a=b", status),
        "/3": redirect(f"//{NAME}:PORT/4", status),
        "/4": answer(CONTENT),
    }
    async with web(answers) as site:
        answers["/3"] = answers["/3"].replace(b"PORT", str(site.port).encode())
        assert await Visit(site).fetch(f"http://{NAME}:{site.port}/1") == CONTENT
    assert [head.split()[1] for head in site.requests] == ["/1", "/2", "/3?a=b", "/4"]


async def test_a_redirect_in_a_circle_ends() -> None:
    async with web({"/": redirect("/")}) as site:
        error = await Visit(site).refused(f"http://{NAME}:{site.port}/")
    assert error.code == "invalid_request"
    assert len(site.requests) == 4


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://169.254.169.254:PORT/latest/meta-data/", "egress_denied"),
        ("http://10.0.0.1:PORT/", "egress_denied"),
        ("http://[::1]:PORT/", "egress_denied"),
        ("http://2130706433:PORT/", "egress_denied"),
        ("http://localhost:PORT/", "egress_denied"),
        ("http://inside.example:PORT/", "egress_denied"),
        (f"http://{NAME}:22/", "egress_denied"),
        ("file:///etc/passwd", "invalid_request"),
        (f"http://user:password@{NAME}:PORT/", "invalid_request"),
        ("http://[", "invalid_request"),
    ],
)
async def test_a_redirect_is_checked_like_a_first_url(location: str, code: str) -> None:
    async with web({}) as site:
        site.answers = {"/": redirect(location.replace("PORT", str(site.port)))}
        table = {NAME: [[LOOPBACK]], "inside.example": [["192.168.0.1"]]}
        assert (await Visit(site, table).refused(f"http://{NAME}:{site.port}/")).code == code
    assert len(site.requests) == 1


async def test_a_redirect_from_https_to_http_is_refused() -> None:
    async with web({"/": redirect(f"http://{NAME}:443/")}, tls=server_tls(AUTHORITY, NAME)) as site:
        error = await Visit(site).refused(f"https://{NAME}:{site.port}/")
    assert error.code == "egress_denied"


async def test_no_cookie_is_kept_between_redirects() -> None:
    moved = answer(b"", "Location: /b", "Set-Cookie: session=1", status="302 Found")
    async with web({"/a": moved, "/b": answer(CONTENT)}) as site:
        await Visit(site).fetch(f"http://{NAME}:{site.port}/a")
    assert "cookie" not in site.requests[1].lower()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def informational_forever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def silence(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("slow", [drip, informational_forever, silence])
async def test_a_slow_server_is_given_up(slow: Answer) -> None:
    error = await refusal(slow, timeout=0.3)
    assert (error.code, error.message) == (
        "invalid_request",
        "An image could not be fetched: its server took too long.",
    )


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"400\r\n" + bytes(1024) + b"\r\n")
        await writer.drain()


async def until_close(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1001))
    await writer.drain()


@pytest.mark.parametrize("large", [answer(bytes(1001)), answer(b"", length=10**12), endless, until_close])
async def test_too_much_is_refused(large: Answer) -> None:
    error = await refusal(large)
    assert (error.code, error.status) == ("payload_too_large", 413)


async def test_as_much_as_is_allowed_is_taken() -> None:
    async with web({"/": answer(bytes(1000))}) as site:
        assert await Visit(site).fetch(f"http://{NAME}:{site.port}/") == bytes(1000)


@pytest.mark.parametrize(
    "broken",
    [
        answer(CONTENT, length=len(CONTENT) + 1),
        answer(CONTENT, "Content-Length: 5"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 10_000 + b"\r\n",
        b"",
        answer(gzip.compress(bytes(100_000)), "Content-Encoding: gzip"),
        answer(CONTENT, "Content-Encoding: br"),
        answer(CONTENT, status="404 Not Found"),
        answer(CONTENT, status="500 Internal Server Error"),
        answer(b"", status="204 No Content"),
        answer(CONTENT, status="206 Partial Content"),
        answer(CONTENT, status="302 Found"),
    ],
)
async def test_an_answer_that_is_no_whole_file_is_refused(broken: bytes) -> None:
    error = await refusal(broken)
    assert error.code == "invalid_request"
    assert "secret" not in error.message


async def test_a_port_that_nobody_serves_is_an_error() -> None:
    async with web({}) as site:
        visit = Visit(site)
    assert (await visit.refused(f"http://{NAME}:{site.port}/")).code == "invalid_request"


async def test_what_comes_is_taken_from_the_budget_until_it_is_used_up() -> None:
    class Budget:
        left = 600

        async def take(self, count: int) -> None:
            self.left -= count
            if self.left < 0:
                raise ApiError("rate_limited", "Too many bytes of images in the last minute.")

    budget = Budget()
    async with web({"/": answer(bytes(400))}) as site:
        visit = Visit(site)
        async with Fetcher(visit.limits, visit.network) as fetcher:
            await fetcher.fetch(f"http://{NAME}:{site.port}/", budget)
            assert budget.left == 200
            with pytest.raises(ApiError) as raised:
                await fetcher.fetch(f"http://{NAME}:{site.port}/", budget)
    assert raised.value.code == "rate_limited"
