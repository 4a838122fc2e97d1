"""``grpc.health.v1.Health``: whether the server as a whole serves. Watching is not offered; Envoy only asks.

The messages have one member each, so they are read and written by hand.

Source: the GRPC Health Checking Protocol page; https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.receiver import Method
from sidecar.grpc_h2.status import Status
from sidecar.grpc_h2.unary import Unary

# HealthCheckResponse.status, the first member: an enum.
_SERVING = b"\x08\x01"
_NOT_SERVING = b"\x08\x02"
# HealthCheckRequest.service, the first member: a string; the empty one, which means the server, may stand there too.
_WHOLE_SERVER = (b"", b"\x0a\x00")


class Health:
    """The service; ``serving`` is what it tells."""

    def __init__(self) -> None:
        self.serving = True

    @property
    def methods(self) -> dict[str, Method]:
        """Its methods by their paths."""
        return {"/grpc.health.v1.Health/Check": lambda call: Unary(call, self._check)}

    def _check(self, call: Call, request: bytes) -> None:
        if request not in _WHOLE_SERVER:
            call.finish(Status.NOT_FOUND, "only the server as a whole is known here")
            return
        call.send(_SERVING if self.serving else _NOT_SERVING)
        call.finish()
