"""The status page on the admin interface: its files, its data and the way to Envoy, each with who may have it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from aiohttp import web

from sidecar.admin.status.access import Access, require_own_page
from sidecar.admin.status.files import HEADERS, read_files
from sidecar.admin.status.node import Node
from sidecar.admin.status.organizations import organizations
from sidecar.admin.status.overview import overview, path_of
from sidecar.admin.status.relay import Relay, relaying
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.store import Store

PATH = "/status/"

# For the answer to be made.
_SECONDS = 10.0
_RELAY = web.AppKey("relay", Relay)


def add_status(app: web.Application, node: Node, access: Access, store: Store | None) -> None:
    """Add the page of ``node``; without a ``store`` there are no organizations."""

    async def data(request: web.Request) -> Reply:
        await access.require(request)
        return _data(await asyncio.to_thread(overview, node))

    async def of_organizations(request: web.Request) -> Reply:
        await access.require_key(request)
        assert store is not None, "who has a key is in the store"
        after = request.query.get("after", "")
        return _data(await store.read(partial(organizations, node=node, after=after)))

    async def relay(request: web.Request) -> web.StreamResponse:
        require_own_page(request)
        await access.require(request)
        surface = node.surfaces.get(request.match_info["surface"])
        if surface is None:
            raise ApiError("not_found", "There is no such surface.")
        return await app[_RELAY].send(request, path_of(surface))

    for name, reply in read_files().items():
        app.router.add_get(PATH + name, _answering(partial(_file, reply)))
    for path in ("/", PATH.rstrip("/")):
        app.router.add_get(path, _to_the_page)
    app.router.add_get(f"{PATH}data/node", _answering(data))
    app.router.add_get(f"{PATH}data/organizations", _answering(of_organizations))
    if node.playground is not None:
        app.cleanup_ctx.append(partial(_keep_relay, base_url=node.playground))
        app.router.add_post(f"{PATH}relay/{{surface}}", relay)


def _answering(
    handle: Callable[[web.Request], Awaitable[Reply]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        async with asyncio.timeout(_SECONDS):
            reply = await handle(request)
        return web.Response(status=reply.status, headers={**reply.headers, **HEADERS}, body=reply.body)

    return answer


async def _file(reply: Reply, _request: web.Request) -> Reply:
    return reply


async def _to_the_page(request: web.Request) -> web.StreamResponse:
    # Relative, so that it also leads there behind a proxy that serves this below a path of its own.
    return web.Response(status=307, headers={"location": PATH.lstrip("/")})


def _data(value: object) -> Reply:
    return Reply.json(value, 200, {"cache-control": "no-store"})


async def _keep_relay(app: web.Application, base_url: str) -> AsyncIterator[None]:
    async with relaying(base_url) as relay:
        app[_RELAY] = relay
        yield
