"""Settings of the ports that a node opens beside Envoy's: for operators and their systems, not for clients."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from sidecar.config.section import Section

ADDRESS = r"^[^\s:]+:\d{1,5}$"
_LAST_PORT = 65535


def checked_port(address: str) -> str:
    """``address`` of the form :data:`ADDRESS`, if there is such a port; raises :class:`ValueError`."""
    if not 0 < int(address.rpartition(":")[2]) <= _LAST_PORT:
        raise ValueError(f"a port is a number from 1 to {_LAST_PORT}")
    return address


Address = Annotated[str, Field(pattern=ADDRESS), AfterValidator(checked_port)]


class UsageFeedConfig(Section):
    """Where a billing system reads usage records."""

    address: Address | None = Field(
        default=None,
        description="`host:port` of the gRPC service of [billing.md](billing.md#the-feed), without TLS: an address of"
        " this machine alone, as `127.0.0.1:9100`, unless a proxy with TLS stands before it",
    )


class AdminConfig(Section):
    """Where an operator's console and monitoring ask."""

    address: Address | None = Field(
        default=None,
        description="`host:port` of the HTTP interface of [admin.md](admin.md), of [metrics.md](metrics.md) and of the"
        " [status page](status.md), without TLS: an address of this machine alone, as `127.0.0.1:9101`, unless a proxy"
        " with TLS stands before it. Where there are no accounts it has the metrics alone, and at a loopback address"
        " the status page",
    )
    playground: Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+$")] | None = Field(
        default=None,
        description="base URL of Envoy's listener, as `http://127.0.0.1:8080`, to which the status page can send"
        " requests; without it the page has no playground",
    )
