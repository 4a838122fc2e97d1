"""An ext_proc server that hands back what it is sent: what the way to a sidecar costs before anything is done there.

Started by itself, with the socket to listen on. It stands on the sidecar's transport, and reads and writes the pieces
of a body as the sidecar does, without protobuf's objects.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import uvloop
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.extproc import by_hand
from sidecar.grpc_h2 import Call, Server

_PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"


class _Echo:
    """The way of one HTTP request."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def received(self, message: bytes) -> None:
        """Hand it back."""
        piece = by_hand.body_of(message)
        self._call.send(by_hand.response_body(piece) if piece else _other(message))

    def handed(self, mark: int) -> None:
        """Nothing is counted."""

    def drained(self) -> None:
        """Nothing is held back."""

    def half_closed(self) -> None:
        """Envoy has nothing more to say."""
        self._call.finish()

    def closed(self) -> None:
        """Nothing is kept."""


def _other(message: bytes) -> bytes:
    """The answer to a head, or to the last piece."""
    request, response = ProcessingRequest.FromString(message), ProcessingResponse()
    if request.HasField("response_body"):
        streamed = response.response_body.response.body_mutation.streamed_response
        streamed.body, streamed.end_of_stream = request.response_body.body, request.response_body.end_of_stream
    else:
        response.response_headers.SetInParent()
    serialized: bytes = response.SerializeToString()
    return serialized


async def _serve(socket: Path) -> None:
    await Server.listen(socket, {_PROCESS: _Echo})
    # As the sidecar's workers do.
    gc.freeze()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
