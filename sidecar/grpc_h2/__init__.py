"""A gRPC server for peers on the same machine: sans-I/O HTTP/2, an asyncio edge, Unix sockets, and nothing else.

It is made for streams of small messages, as Envoy's external processing sends one for each piece of a body. grpc.aio
takes some twenty system calls and several threads for such a message; here what a read brings is handled inside
``data_received``, and answered in one write.

:class:`Server` listens, :class:`Call` is what a method sends on, :class:`Receiver` what a method is. Everything that a
peer controls has a bound in :class:`Limits`. Deadlines (``grpc-timeout``) are the client's to keep; compression is not
offered.
"""

from __future__ import annotations

from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.connection import Connection
from sidecar.grpc_h2.health import Health
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.receiver import Method, Methods, Receiver
from sidecar.grpc_h2.server import Server
from sidecar.grpc_h2.status import Status
from sidecar.grpc_h2.unary import Unary, unary

__all__ = [
    "Call",
    "Connection",
    "Health",
    "Limits",
    "Method",
    "Methods",
    "Receiver",
    "Server",
    "Status",
    "Unary",
    "unary",
]
