"""What the templates of Envoy's configuration leave open."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sidecar.config.identity import TrustedIdentity
from sidecar.config.upstreams import UpstreamConfig

Wire = Literal["tunnel", "direct", "origin"]

EGRESS_SOCKET = "egress.sock"
"""The name of the egress listener's socket, in the directory of all sockets."""

# The certificates that this system trusts.
_CA_FILE = ssl.get_default_verify_paths().cafile or ssl.get_default_verify_paths().openssl_cafile

# In file descriptors: what Envoy holds by itself (epolls, logs, its connections to the workers and to Triton, health
# checks), and what a client's connection with its request takes, by wire: its socket and both ends of the tunnel, or
# at worst a connection to Triton.
_OWN_DESCRIPTORS = 512
_DESCRIPTORS_PER_CONNECTION = {"tunnel": 3, "direct": 2, "origin": 2}


@dataclass(frozen=True)
class Traces:
    """Where Envoy's own spans go, by OTLP over HTTP: the collector's ``url``, and its ``host`` and ``port``.

    ``share`` of the requests that belong to no trace are traced.
    """

    url: str
    host: str
    port: int
    share: float


@dataclass(frozen=True)
class EnvoySettings:
    """What the templates leave open.

    ``address`` and ``port`` are where clients connect, with TLS where there are ``certificate`` and its
    ``certificate_key``, both in PEM. ``triton`` are the hosts and ports of gRPC that requests are spread over. Without
    ``accounts`` nobody is asked for a key; ``trusted`` is where authentication of the operator's own leaves what it has
    found out, which counts only where our parts are merged into that operator's Envoy. ``surfaces`` are those that are
    served, the node's first. The ``threads`` serve connections.

    Sizes are in bytes, timeouts in seconds; both idle timeouts are longer than the sidecar's own timers, which end a
    silent stream first. ``max_connections`` is how many connections all clients may have together, ``request_timeout``
    how long a request may take until its last byte has come. ``upstreams`` are those that speak the Responses API;
    where they name no certificates, those of ``ca_file`` are trusted. Without ``traces`` Envoy makes no spans of its
    own; one that is not ours makes none for us.
    """

    port: int
    sockets: Path
    worker_sockets: Sequence[Path]
    triton: Sequence[tuple[str, int]]
    log_path: Path
    address: str = "127.0.0.1"
    certificate: Path | None = None
    certificate_key: Path | None = None
    wire: Wire = "tunnel"
    accounts: bool = True
    trusted: TrustedIdentity | None = None
    surfaces: Sequence[str] = ("node",)
    threads: int = 2
    # Above the sidecar's own limit: the sidecar reads a body to its end and names its size, where Envoy would close the
    # connection on a client that is still sending.
    max_request_bytes: int = 40 * 1024 * 1024
    # Below the sidecar's own patience with a silent model.
    client_stall_timeout: float = 30
    max_connections: int = 4096
    request_timeout: int = 60
    egress_idle_timeout: int = 180
    ingress_idle_timeout: int = 300
    # Above the ten minutes that a request with a hosted search may take.
    native_idle_timeout: int = 660
    upstreams: Sequence[UpstreamConfig] = ()
    ca_file: str = _CA_FILE
    traces: Traces | None = None

    @property
    def descriptors(self) -> int:
        """How many file descriptors Envoy may need; without one it ends."""
        return _OWN_DESCRIPTORS + _DESCRIPTORS_PER_CONNECTION[self.wire] * self.max_connections

    @property
    def admin_socket(self) -> Path:
        """Envoy's admin interface."""
        return self.sockets / "admin.sock"

    @property
    def egress_socket(self) -> Path:
        """The egress listener of the wires that have one."""
        return self.sockets / EGRESS_SOCKET
