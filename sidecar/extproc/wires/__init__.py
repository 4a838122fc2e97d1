"""The ways from Envoy to an upstream, one file each: the same exchange over another edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sidecar.extproc.wires.direct import DirectWire
from sidecar.extproc.wires.origin import Nobody, OriginWire, Upstream
from sidecar.extproc.wires.tunnel import TunnelWire
from sidecar.extproc.wires.wire import Wire, WireEnd

Wires = Mapping[str, Callable[[], Wire]]
"""How wires are made, by the names that routes have for them."""


def wires(upstream: Upstream) -> Wires:
    """All wires; ``upstream`` makes the calls of the one that Envoy does not make."""
    return {"tunnel": TunnelWire, "direct": DirectWire, "origin": lambda: OriginWire(upstream)}


WIRES = wires(Nobody())
"""The wires where no upstream is configured."""

__all__ = ["WIRES", "Upstream", "Wire", "WireEnd", "Wires", "wires"]
