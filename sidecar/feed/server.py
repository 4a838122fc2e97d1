"""The port of the usage feed: every worker listens on it, and the system gives each connection to one of them."""

from __future__ import annotations

import grpc

from sidecar.config.load import ConfigError
from sidecar.feed.service import UsageFeed

_OPTIONS = [
    ("grpc.so_reuseport", 1),
    # A reader that waits for records says nothing for a long time; one that has gone without a word is noticed.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A request is a cursor and some organizations.
    ("grpc.max_receive_message_length", 64 * 1024),
]


async def start_feed(feed: UsageFeed, address: str) -> grpc.aio.Server:
    """Serve ``feed`` at ``address`` (``host:port``).

    Raises:
        ConfigError: nothing can listen there.
    """
    server = grpc.aio.server(options=_OPTIONS)
    feed.add_to(server)
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise ConfigError(f"usage_feed.address: nothing can listen at {address}") from error
    await server.start()
    return server
