"""What a worker serves from the store beside Envoy, where it is configured, the usage feed; and what it writes now and
then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import grpc

from sidecar.admission.end_users import ForgetEndUsers
from sidecar.admission.records import Adoption
from sidecar.admission.retention import Retention
from sidecar.config.models import Config
from sidecar.feed.server import start_feed
from sidecar.feed.service import UsageFeed
from sidecar.identity.authenticator import Authenticator
from sidecar.store import Store, StoreUnavailable, repeat_forever
from sidecar.stored.removal import Expire

_PAUSE_SECONDS = 2.0

_log = logging.getLogger(__name__)


@asynccontextmanager
async def listen(config: Config, store: Store, authenticator: Authenticator) -> AsyncIterator[None]:
    """Serve what ``config`` asks for, until the context is left.

    Raises:
        ConfigError: an address cannot be had.
    """
    async with AsyncExitStack() as running:
        if config.usage_feed.address is not None:
            feed = UsageFeed(store, authenticator, config.currency)
            running.push_async_callback(_stop_feed, await start_feed(feed, config.usage_feed.address))
            _begin(running, asyncio.create_task(_adopt(store)))
            _log.info("the usage feed is at %s", config.usage_feed.address)
        _begin(running, asyncio.create_task(authenticator.last_used.write_forever()))
        if config.store.retention_days is not None:
            _begin(running, asyncio.create_task(repeat_forever(store, Retention(), config.store.retention_days)))
        if config.surfaces.bureau is not None:
            # Also where nothing more is stored: what there is has its time.
            _begin(running, asyncio.create_task(repeat_forever(store, Expire(), None)))
            _begin(running, asyncio.create_task(repeat_forever(store, ForgetEndUsers(), None)))
        yield


def _begin(running: AsyncExitStack, task: asyncio.Task[None]) -> None:
    async def end() -> None:
        task.cancel()
        await asyncio.wait((task,))

    running.push_async_callback(end)


async def _adopt(store: Store) -> None:
    """Once the store answers, see to what a back-up has brought."""
    while True:
        try:
            return await store.run(Adoption(), None)
        except StoreUnavailable:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _stop_feed(server: grpc.aio.Server) -> None:
    await server.stop(0)
