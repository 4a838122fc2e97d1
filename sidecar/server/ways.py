"""The ways to Triton that the sidecar itself takes: through Envoy's egress listener, as requests do, or straight."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from sidecar.config.models import Config
from sidecar.envoy.settings import EGRESS_SOCKET

_SECONDS = 1.0


async def envoys_way(config: Config) -> str | None:
    """gRPC's name of Envoy's egress listener; ``None`` where nobody listens there now."""
    upstream = config.triton.upstream_server
    path = upstream if isinstance(upstream, Path) else config.sockets / EGRESS_SOCKET
    return f"unix:{path.resolve()}" if await _listens(path) else None


async def requests_way(config: Config) -> str:
    """gRPC's name of whom requests are sent to, as far as that can be: of Triton itself where no Envoy is between."""
    upstream = config.triton.upstream_server
    if isinstance(upstream, tuple):
        return f"{upstream[0]}:{upstream[1]}"
    address = config.triton.address
    assert address is not None, "a model of Triton's has one"
    return await envoys_way(config) or address


async def _listens(path: Path) -> bool:
    """Whether somebody accepts connections there: a socket's file outlives who made it."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_unix_connection(path)
        writer.close()
        return True
    return False
