"""gRPC with peers on the same machine, server and client: sans-I/O HTTP/2, an asyncio edge, and nothing else.

It is made for streams of small messages, as Envoy's external processing sends one for each piece of a body. grpc.aio
takes some twenty system calls and several threads for such a message; here what a read brings is handled inside
``data_received``, and answered in one write.

:class:`Server` listens, :class:`Call` is what a method sends on, :class:`Receiver` what a method is.
:class:`Client` calls a server: an :class:`Answer` is told what comes of a call. Everything that a peer controls has a
bound in :class:`Limits`. Deadlines (``grpc-timeout``) are the client's to keep; compression is not
offered.
"""

from __future__ import annotations

from sidecar.grpc_h2.call import Call
from sidecar.grpc_h2.client import Client
from sidecar.grpc_h2.connection import Connection
from sidecar.grpc_h2.health import Health
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.outgoing import Answer, Outgoing
from sidecar.grpc_h2.receiver import Method, Methods, Receiver
from sidecar.grpc_h2.server import Server
from sidecar.grpc_h2.status import Status
from sidecar.grpc_h2.unary import Unary, unary

__all__ = [
    "Answer",
    "Call",
    "Client",
    "Connection",
    "Health",
    "Limits",
    "Method",
    "Methods",
    "Outgoing",
    "Receiver",
    "Server",
    "Status",
    "Unary",
    "unary",
]
