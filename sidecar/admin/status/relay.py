"""The playground's way to Envoy: what the page sends goes on to its listener, with the key that the user has typed.

So a browser needs nothing of Envoy's listener, which answers no page of another origin, and the request takes the same
way as any client's. Only the paths of the surfaces that create responses can be reached.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from sidecar.admin.status.files import HEADERS
from sidecar.responses.errors import ApiError

KEY_HEADER = "x-playground-key"
"""The key for Envoy; that for the admin interface is in ``Authorization``."""

_CONNECT_SECONDS = 5.0
_PASSED_ON = ("content-type", "x-request-id", "retry-after", "x-should-retry", "server-timing")
_JSON = "application/json"


@asynccontextmanager
async def relaying(base_url: str) -> AsyncIterator[Relay]:
    """The relay to ``base_url``, as long as the context lasts."""
    # How long an answer may take is Envoy's business.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    cookies = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(base_url, timeout=timeout, cookie_jar=cookies, auto_decompress=False) as http:
        yield Relay(http)


class Relay:
    """Sends requests on."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        """``http`` has the base URL."""
        self._http = http

    async def send(self, request: web.Request, path: str) -> web.StreamResponse:
        """Answer ``request`` with what Envoy answers at ``path``, as it comes.

        Raises:
            ApiError: it has no JSON, or Envoy does not answer.
        """
        # No page of another site can send this without having asked first, which nothing here answers.
        if request.content_type != _JSON:
            raise ApiError("unsupported_media_type", f"Send {_JSON}.")
        headers = {"content-type": _JSON, "accept": request.headers.get("accept", "*/*")}
        if key := request.headers.get(KEY_HEADER):
            headers["authorization"] = f"Bearer {key}"
        try:
            async with self._http.post(path, data=request.content, headers=headers, allow_redirects=False) as answer:
                return await _pass_on(request, answer)
        except (aiohttp.ClientConnectionError, TimeoutError):
            raise ApiError("node_unavailable", "Envoy does not answer at admin.playground.") from None


async def _pass_on(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = {name: value for name in _PASSED_ON if (value := answer.headers.get(name))}
    response = web.StreamResponse(status=answer.status, headers={**headers, **HEADERS, "cache-control": "no-store"})
    await response.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
    except (aiohttp.ClientError, ConnectionError):
        # Envoy has cut it off, or the page is gone: an end would make it look whole.
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response
