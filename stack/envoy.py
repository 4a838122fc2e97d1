"""The Envoy of the local stack: renders ``envoy/local.yaml.j2`` and runs the result."""

from __future__ import annotations

import http.client
import resource
import ssl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import jinja2

from sidecar.config.upstreams import UpstreamConfig
from sidecar.responses.caller import CALLER_HEADERS
from sidecar.responses.errors import CODES, ApiError
from sidecar.surfaces import SURFACES
from stack.net import UnixHTTPConnection
from stack.paths import ROOT
from stack.process import Process, StackError

Wire = Literal["tunnel", "direct", "origin"]

EGRESS_SOCKET = "egress.sock"
"""The name of the egress listener's socket, in the directory of all sockets."""

# The certificates that this system trusts.
_CA_FILE = ssl.get_default_verify_paths().cafile or ssl.get_default_verify_paths().openssl_cafile

_BINARY = Path(sys.executable).with_name("envoy")

# In file descriptors: what Envoy holds by itself (epolls, logs, its connections to the workers and to Triton, health
# checks), and what a client's connection with its request takes, by wire: its socket and both ends of the tunnel, or
# at worst a connection to Triton.
_OWN_DESCRIPTORS = 512
_DESCRIPTORS_PER_CONNECTION = {"tunnel": 3, "direct": 2, "origin": 2}


@dataclass(frozen=True)
class EnvoySettings:
    """What the template leaves open.

    Without ``accounts`` nobody is asked for a key. ``surfaces`` are those that are served, the node's first. The
    ``threads`` serve connections. Sizes are in bytes, timeouts in seconds; both idle timeouts are longer than the
    sidecar's own timers, which end a silent stream first. ``max_connections`` is how many connections all clients may
    have together, ``request_timeout`` how long a request may take until its last byte has come. ``upstreams`` are those
    that speak the Responses API; where they name no certificates, those of ``ca_file`` are trusted.
    """

    port: int
    sockets: Path
    worker_sockets: Sequence[Path]
    triton_host: str
    triton_port: int
    log_path: Path
    wire: Wire = "tunnel"
    accounts: bool = True
    surfaces: Sequence[str] = ("node",)
    threads: int = 2
    # Above the sidecar's own limit: the sidecar reads a body to its end and names its size, where Envoy would close the
    # connection on a client that is still sending.
    max_request_bytes: int = 40 * 1024 * 1024
    # Below the sidecar's own patience with a silent model.
    client_stall_timeout: int = 30
    max_connections: int = 4096
    request_timeout: int = 60
    egress_idle_timeout: int = 180
    ingress_idle_timeout: int = 300
    # Above the ten minutes that a request with a hosted search may take.
    native_idle_timeout: int = 660
    upstreams: Sequence[UpstreamConfig] = ()
    ca_file: str = _CA_FILE

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


def render(settings: EnvoySettings) -> str:
    """Envoy's configuration as YAML.

    The types and the ``Retry-After`` of Envoy's own errors come from the sidecar's table of codes.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOT / "envoy"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    variables = {name: getattr(settings, name) for name in EnvoySettings.__dataclass_fields__}
    variables["surfaces"] = [_surface(name, settings) for name in settings.surfaces]
    return environment.get_template("local.yaml.j2").render(
        **variables,
        admin_socket=settings.admin_socket,
        egress_socket=settings.egress_socket,
        codes=CODES,
        caller_headers=CALLER_HEADERS,
    )


def _surface(name: str, settings: EnvoySettings) -> dict[str, Any]:
    """What the templates know of a surface."""
    surface = SURFACES[name]
    members = surface.error_members(ApiError("internal", ""), "%REQ(X-REQUEST-ID)%")
    return {
        "name": name,
        "base": surface.base,
        "stores": surface.has_stored_responses,
        "logs": surface.has_request_log,
        "compacts": surface.compacts,
        "noun": surface.noun,
        "place": surface.place,
        "max_bytes": surface.bounds.request_bytes or settings.max_request_bytes,
        "members": {
            member: value for member, value in members.items() if member not in ApiError("internal", "").fields()
        },
        "late": "deadline_exceeded" if isfinite(surface.bounds.seconds) else "infer_backend_unavailable",
    }


def validate(config: Path) -> None:
    """Let Envoy itself check a configuration file.

    Raises:
        StackError: Envoy refuses it; the message is Envoy's last line.
    """
    done = subprocess.run(
        [_BINARY, "--mode", "validate", "--log-level", "error", "-c", config],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StackError(f"Envoy refuses {config.name}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def allow_descriptors(needed: int) -> None:
    """Let this process, and those it starts, have so many file descriptors.

    Raises:
        StackError: the system allows fewer.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise StackError(
            f"Envoy may need {needed} open files, but the system allows {hard}: raise the limit (ulimit -Hn)."
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Envoy:
    """A running Envoy."""

    def __init__(self, settings: EnvoySettings, run_dir: Path, configuration: str | None = None) -> None:
        """Start it, with what is rendered of ``settings`` unless there is another ``configuration``.

        Raises:
            StackError: the system allows fewer open files than it may need.
        """
        allow_descriptors(settings.descriptors)
        self.settings = settings
        config = run_dir / "envoy.yaml"
        config.write_text(configuration or render(settings))
        self.process = Process(
            "Envoy",
            # Hot restart would tie all Envoys of the machine together through one piece of shared memory.
            [
                str(_BINARY),
                "-c",
                str(config),
                "--concurrency",
                str(settings.threads),
                "--disable-hot-restart",
                "--log-level",
                "warning",
                # The access log is written after 10 seconds by default.
                "--file-flush-interval-msec",
                "200",
            ],
            run_dir / "envoy.log",
        )

    def wait_ready(self, seconds: float = 30) -> None:
        """Wait until the listeners take requests.

        Raises:
            StackError: Envoy ended or was not ready in time.
        """
        self.process.wait_until(self._live, seconds)

    def _live(self) -> bool:
        try:
            return self.admin("/ready").strip() == "LIVE"
        except OSError:
            return False

    def admin(self, path: str) -> str:
        """The answer of Envoy's admin interface to a GET."""
        connection = UnixHTTPConnection(self.settings.admin_socket)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def stats(self, prefix: str) -> dict[str, int]:
        """Counters and gauges whose name starts with ``prefix``."""
        lines = self.admin(f"/stats?filter=^{prefix}&type=All").splitlines()
        pairs = (line.rsplit(": ", 1) for line in lines)
        return {name: int(value) for name, value in pairs if value.isdigit()}
