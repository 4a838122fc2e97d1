"""Remote images over HTTP, from the public internet only.

The address that was checked is the one connected to: a name is resolved once per connection, by
:class:`CheckedResolver`, and aiohttp connects to the addresses that it returns, with the name in TLS and ``Host``.
Redirects are followed here, one by one, so that each is checked like the first URL.

aiohttp is used for its resolver seam, which makes that possible without a transport of our own, and because its parser
bounds heads by itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from sidecar.config.models import ImageLimits
from sidecar.egress.budget import ByteBudget
from sidecar.egress.guard import Address, check_url, host_address, is_public, no_public_address
from sidecar.egress.resolve import CheckedResolver, SystemResolver
from sidecar.images.errors import too_large
from sidecar.responses.errors import ApiError

_MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "Accept": "image/png, image/jpeg, image/webp, image/gif",
    "Accept-Encoding": "identity",
    "User-Agent": "responses-sidecar",
}


@dataclass(frozen=True, slots=True)
class Network:
    """The network that fetches go out to: which addresses are allowed, who resolves names, whom TLS trusts."""

    allows: Callable[[Address], bool] = is_public
    resolver: AbstractResolver = field(default_factory=SystemResolver)
    tls: ssl.SSLContext | bool = True


INTERNET = Network()
"""The public internet, by the system's resolver and certificates."""


class Fetcher:
    """The fetches of one request; an asynchronous context manager. No connection outlives its fetch."""

    def __init__(self, limits: ImageLimits, network: Network = INTERNET) -> None:
        self._limits = limits
        self._allows = network.allows
        # Waiting for an address, a connection or a byte may take half of the time for the whole.
        phase = limits.timeout / 2
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=CheckedResolver(network.resolver, network.allows, limits),
                use_dns_cache=False,
                force_close=True,
                ssl=network.tls,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=phase, sock_read=phase),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._session.close()

    async def fetch(self, url: str, budget: ByteBudget) -> bytes:
        """The content at ``url``; its bytes are taken from ``budget`` as they come.

        Raises:
            ApiError: ``egress_denied``, the URL or one that it redirects to is not allowed; ``payload_too_large``;
                ``rate_limited``, the budget's; ``invalid_request``, there is nothing to be had. None quotes the URL.
        """
        try:
            async with asyncio.timeout(self._limits.timeout):
                return await self._follow(self._check(url), budget)
        except TimeoutError as error:
            raise _failed("its server took too long") from error
        except aiohttp.ClientConnectorDNSError as error:
            raise no_public_address() from error
        except (aiohttp.ClientError, OSError) as error:
            raise _failed("its server could not be reached, or broke off") from error

    async def _follow(self, url: URL, budget: ByteBudget) -> bytes:
        for _ in range(_MAX_REDIRECTS + 1):
            async with self._session.get(url, allow_redirects=False) as response:
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None:
                    return await self._read(response, budget)
            url = self._redirected(url, location)
        raise _failed(f"its server redirects more than {_MAX_REDIRECTS} times")

    def _redirected(self, url: URL, location: str) -> URL:
        try:
            target = str(url.join(URL(location)))
        except ValueError as error:
            raise _failed("its server redirects to a malformed URL") from error
        checked = self._check(target)
        if url.scheme == "https" and checked.scheme == "http":
            raise ApiError("egress_denied", "An image's server redirects from https to http.")
        return checked

    def _check(self, text: str) -> URL:
        url = check_url(text, allow_http=self._limits.allow_http, ports=self._limits.ports)
        address = host_address(url)
        # The resolver is not asked about a host that is an address.
        if address is not None and not self._allows(address):
            raise no_public_address()
        return url

    async def _read(self, response: aiohttp.ClientResponse, budget: ByteBudget) -> bytes:
        if response.status != 200:
            raise _failed(f"its server answered with status {response.status}")
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise _failed("its server sent it compressed without being asked to")
        if (response.content_length or 0) > self._limits.max_bytes:
            raise too_large(self._limits.max_bytes)
        content = bytearray()
        async for chunk in response.content.iter_any():
            await budget.take(len(chunk))
            content += chunk
            if len(content) > self._limits.max_bytes:
                raise too_large(self._limits.max_bytes)
        return bytes(content)


def _failed(why: str) -> ApiError:
    return ApiError("invalid_request", f"An image could not be fetched: {why}.")
