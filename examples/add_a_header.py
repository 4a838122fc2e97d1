"""An ext_proc server for Envoy that adds a header to every response: what it takes to drive sidecar.grpc_h2.

Envoy asks it where an HTTP filter "envoy.filters.http.ext_proc" has an "envoy_grpc" cluster with the socket's pipe and
HTTP/2. From a checkout in which ./dev has run once: .venv/bin/python examples/add_a_header.py /tmp/ext_proc.sock
"""

import asyncio
import signal
import sys
from pathlib import Path

from envoy.config.core.v3.base_pb2 import HeaderValue, HeaderValueOption
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from sidecar.grpc_h2 import Call, Health, Server

PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
SECONDS_TO_END = 5.0


class AddHeader:
    """One call, which is one HTTP request's way through Envoy. All of it is called from the event loop."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._value = call.metadata.get("x-greeting", "hello")  # The gRPC metadata that Envoy's configuration sets.
        self._number = 0

    def received(self, message: bytes) -> None:
        """Answer each message of Envoy's; only the response's head is changed."""
        request, response = ProcessingRequest.FromString(message), ProcessingResponse()
        kind = request.WhichOneof("request") or "request_headers"
        getattr(response, kind).SetInParent()
        if kind == "response_headers":
            header = HeaderValue(key="x-greeting", raw_value=self._value.encode())
            option = HeaderValueOption(header=header, append_action=HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD)
            response.response_headers.response.header_mutation.set_headers.append(option)
        self._number += 1
        self._call.send(response.SerializeToString(), mark=self._number)

    def handed(self, mark: int) -> None:
        """The answer with this number has left: where one would count what was delivered."""
        print(f"answer {mark} of {self._call.path} has been written", flush=True)

    def drained(self) -> None:
        """Envoy reads again what it did not for a while: where one would go on producing."""

    def half_closed(self) -> None:
        """Envoy has nothing more to ask."""
        self._call.finish()

    def closed(self) -> None:
        """The call is over, as it should or because the client has left."""
        print(f"over after {self._number} messages", flush=True)


async def serve(socket: Path) -> None:
    """Serve on a socket that does not exist yet until a signal, then let the calls under way end."""
    stop, health = asyncio.Event(), Health()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = await Server.listen(socket, {PROCESS: AddHeader, **health.methods})
    print(f"serving on {socket}", flush=True)
    await stop.wait()
    health.serving = False
    await server.close(SECONDS_TO_END)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
