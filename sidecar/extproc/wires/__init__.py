"""The ways from Envoy to an upstream, one file each: the same exchange over another edge."""

from __future__ import annotations

from sidecar.extproc.wires.direct import DirectWire
from sidecar.extproc.wires.tunnel import TunnelWire
from sidecar.extproc.wires.wire import Wire, WireEnd

WIRES: dict[str, type[Wire]] = {"tunnel": TunnelWire, "direct": DirectWire}

__all__ = ["WIRES", "Wire", "WireEnd"]
