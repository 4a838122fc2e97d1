"""The admin interface over aiohttp: who may ask, and how every answer and error looks, stands here for all routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from sidecar.admin.route import OpenPath, Route, Tools
from sidecar.admin.sessions import ROUTES as SESSIONS
from sidecar.config.load import ConfigError
from sidecar.identity.presented import presented
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.store import StoreUnavailable

ROUTES: Sequence[Route] = (*SESSIONS,)
"""All of them."""

MOST_BYTES = 16 * 1024
"""Of a request's body."""

# For a request's body to come, and to be dealt with.
_SECONDS = 10.0
_STOP_SECONDS = 1.0

_log = logging.getLogger(__name__)


def make_app(
    tools: Tools | None, routes: Sequence[Route] = ROUTES, open_paths: Sequence[OpenPath] = ()
) -> web.Application:
    """The interface with ``routes``, where there are ``tools`` for them, and ``open_paths``."""
    app = web.Application(middlewares=[_answer_errors], client_max_size=MOST_BYTES)
    if tools is not None:
        for route in routes:
            app.router.add_route(route.method, route.path, _handler(tools, route))
    for path in open_paths:
        app.router.add_get(path.path, _open_handler(path))
    return app


async def start_admin(app: web.Application, address: str) -> web.AppRunner:
    """Serve ``app`` at ``address`` (``host:port``), which the workers of a node share.

    Raises:
        ConfigError: nothing can listen there.
    """
    host, _, port = address.rpartition(":")
    # Its own log of accesses would have the ids in paths, and none is wanted. Who has left waits for no answer, and
    # the playground's request ends with the page that sent it.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_SECONDS, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port), reuse_port=True).start()
    except (OSError, OverflowError) as error:
        await runner.cleanup()
        raise ConfigError(f"admin.address: nothing can listen at {address}") from error
    return runner


def _handler(tools: Tools, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        if route.scope is not None:
            secret = presented({"authorization": request.headers.getall("authorization", [])}, request.host)
            (await tools.authenticator.identify(secret)).require(route.scope)
        async with asyncio.timeout(_SECONDS):
            return _response(await route.handle(tools, request))

    return handle


def _open_handler(path: OpenPath) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(_request: web.Request) -> web.StreamResponse:
        async with asyncio.timeout(_SECONDS):
            return _response(await path.answer())

    return handle


@web.middleware
async def _answer_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return _response(error.reply())
    except (StoreUnavailable, TimeoutError):
        return _response(ApiError("node_unavailable", "The node's store does not answer; try again shortly.").reply())
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        return _response(ApiError("method_not_allowed", f"Only {allowed} is allowed here.", allow=allowed).reply())
    except web.HTTPRequestEntityTooLarge:
        return _response(ApiError("payload_too_large", f"A body has at most {MOST_BYTES} bytes here.").reply())
    except web.HTTPException:
        return _response(ApiError("not_found", "There is nothing at this path.").reply())
    except Exception:
        _log.exception("a request to the admin interface failed")
        return _response(ApiError("internal", "internal error").reply())


def _response(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, headers=reply.headers, body=reply.body)
