"""The admin interface of a worker: for an operator's programs, for Prometheus, and the status page."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sidecar.admin.app import make_app, start_admin
from sidecar.admin.metrics import metrics_path
from sidecar.admin.route import Tools
from sidecar.admin.status.access import Access, is_loopback
from sidecar.admin.status.node import Node
from sidecar.admin.status.routes import add_status
from sidecar.config.models import Config
from sidecar.extproc.sessions import Sessions
from sidecar.server.accounts import Accounts, default_limits

_log = logging.getLogger(__name__)


@asynccontextmanager
async def serve_admin(config: Config, accounts: Accounts | None, sessions: Sessions) -> AsyncIterator[None]:
    """Serve it, if ``config`` asks for it, until the context is left; without ``accounts`` what needs none.

    Raises:
        ConfigError: its address cannot be had.
    """
    address = config.admin.address
    if address is None:
        yield
        return
    tools = None if accounts is None else Tools(accounts.store, accounts.authenticator)
    app = make_app(tools, open_paths=[metrics_path(config.metrics)])
    # Elsewhere than on this machine nobody could tell who looks at the page.
    if tools is not None or is_loopback(address):
        access = Access(address, None if tools is None else tools.authenticator)
        add_status(app, _node(config, sessions), access, None if tools is None else tools.store)
    runner = await start_admin(app, address)
    _log.info("the admin interface is at %s", address)
    try:
        yield
    finally:
        await runner.cleanup()


def _node(config: Config, sessions: Sessions) -> Node:
    return Node(
        catalog=lambda: sessions.catalog,
        surfaces=sessions.surfaces,
        accounts=config.accounts,
        metrics=config.metrics,
        recent=config.recent,
        defaults=default_limits(config),
        currency=config.currency,
        playground=config.admin.playground,
    )
