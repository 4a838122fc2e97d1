"""Look-ups of host names: side by side, each name once, and not more than there are threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.config.models import ImageLimits
from sidecar.egress.resolve import CheckedResolver, SystemResolver
from sidecar.responses.errors import ApiError


class Names:
    """The system's resolver: ``held`` names are not answered before they are ``released``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.held: set[str] = set()
        self.released = threading.Event()

    def getaddrinfo(self, host: str, port: int, *_: object, **__: object) -> list[Any]:
        self.asked.append(host)
        if host in self.held:
            self.released.wait()
        if host == "nobody.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 1)),
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    table = Names()
    monkeypatch.setattr(socket, "getaddrinfo", table.getaddrinfo)
    yield table
    table.released.set()


async def test_the_addresses_of_a_name_are_found_with_their_scopes(names: Names) -> None:
    first, second = await SystemResolver().resolve("a.example", 443)
    assert (first["hostname"], first["host"], first["port"]) == ("a.example", "192.0.2.1", 443)
    assert second["host"].startswith("fe80::1%")
    assert (first["family"], second["family"]) == (socket.AF_INET, socket.AF_INET6)


async def test_a_name_without_addresses_is_an_error_each_time(names: Names) -> None:
    resolver = SystemResolver()
    for _ in range(2):
        with pytest.raises(OSError, match="not known"):
            await resolver.resolve("nobody.example")
    assert names.asked == ["nobody.example"] * 2


async def test_a_name_is_looked_up_once_at_a_time_and_by_no_more_threads_than_there_are(names: Names) -> None:
    names.held = {"slow.example"}
    resolver = SystemResolver(max_threads=1)
    first = asyncio.create_task(resolver.resolve("slow.example"))
    second = asyncio.create_task(resolver.resolve("slow.example"))
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as raised:
        await resolver.resolve("a.example")
    assert raised.value.code == "capacity_unavailable"
    first.cancel()
    names.released.set()
    assert (await second)[0]["host"] == "192.0.2.1"
    assert (await resolver.resolve("a.example"))[0]["hostname"] == "a.example"
    assert names.asked == ["slow.example", "a.example"]


async def test_a_request_looks_up_two_names_at_a_time(names: Names) -> None:
    names.held = {"a.example", "b.example"}
    resolver = CheckedResolver(SystemResolver(), lambda _: True, ImageLimits(lookup_timeout=60.0))
    lookups = [asyncio.create_task(resolver.resolve(f"{letter}.example")) for letter in "abc"]
    while len(names.asked) < 2:
        await asyncio.sleep(0.005)
    assert not lookups[2].done()
    names.released.set()
    await asyncio.gather(*lookups)
    assert sorted(names.asked) == ["a.example", "b.example", "c.example"]
    assert names.asked[2] == "c.example"


async def test_a_name_that_takes_too_long_is_given_up(names: Names) -> None:
    names.held = {"slow.example"}
    resolver = CheckedResolver(SystemResolver(), lambda _: True, ImageLimits(lookup_timeout=0.05))
    with pytest.raises(ApiError) as raised:
        await resolver.resolve("slow.example")
    assert raised.value.code == "invalid_request"
