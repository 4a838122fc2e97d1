"""What carries ext_proc streams between Envoy and the sessions, one file each."""

from __future__ import annotations

from sidecar.extproc.transport import grpc_aio, http2
from sidecar.extproc.transport.serving import Listen, Serving

TRANSPORTS: dict[str, Listen] = {"http2": http2.listen, "grpc_aio": grpc_aio.listen}
"""The transports by their names in the configuration."""

__all__ = ["TRANSPORTS", "Listen", "Serving"]
