"""An Envoy that only forwards, or asks an ext_proc server besides: what is in front of a bridge, or measured alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sidecar.config.processors import shares, usable_processors
from sidecar.envoy.settings import EnvoySettings
from stack.envoy import Envoy
from stack.net import free_port
from stack.paths import socket_directory

# More than any load asks for: the defaults allow 1,024.
_LIMITS = {"max_connections": 8192, "max_pending_requests": 8192, "max_requests": 8192}


def start(run_dir: Path, upstream_port: int, ext_proc: Path | None = None) -> Envoy:
    """Start one that forwards to a port of this machine by HTTP/1.1, and wait until it listens.

    It has as many threads as the Envoy that the sidecar shares the processors with. Every answer goes through the
    server on the socket ``ext_proc``, if there is one, piece by piece.

    Raises:
        StackError: it ended or was not ready in time.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    settings = EnvoySettings(
        port=free_port(),
        sockets=socket_directory(run_dir),
        worker_sockets=(ext_proc,) if ext_proc else (),
        triton=[("127.0.0.1", upstream_port)],
        log_path=run_dir / "access.log",
        threads=shares(usable_processors()).envoy_threads,
    )
    envoy = Envoy(settings, run_dir, json.dumps(_configuration(settings)))
    envoy.wait_ready()
    return envoy


def _configuration(settings: EnvoySettings) -> dict[str, Any]:
    return {
        "admin": {"address": {"pipe": {"path": str(settings.admin_socket), "mode": 0o600}}},
        "static_resources": {
            "listeners": [
                {
                    "name": "ingress",
                    "address": _address(settings.port),
                    "enable_reuse_port": False,
                    "filter_chains": [{"filters": [_connection_manager(settings)]}],
                }
            ],
            "clusters": [_cluster(settings), *map(_ext_proc_cluster, settings.worker_sockets)],
        },
    }


def _connection_manager(settings: EnvoySettings) -> dict[str, Any]:
    route = {"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "0s", "idle_timeout": "300s"}}
    log = "envoy.extensions.access_loggers.file.v3.FileAccessLog"
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            **_type("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
            "stat_prefix": "ingress",
            "stream_idle_timeout": "0s",
            "access_log": [{"name": log, "typed_config": {**_type(log), "path": str(settings.log_path)}}],
            "http_filters": [
                *([_ext_proc_filter()] if settings.worker_sockets else []),
                {
                    "name": "envoy.filters.http.router",
                    "typed_config": _type("envoy.extensions.filters.http.router.v3.Router"),
                },
            ],
            "route_config": {"virtual_hosts": [{"name": "api", "domains": ["*"], "routes": [route]}]},
        },
    }


def _cluster(settings: EnvoySettings) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _address(settings.triton[0][1])}}
    return {
        "name": "upstream",
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [_LIMITS]},
        "load_assignment": {"cluster_name": "upstream", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _ext_proc_filter() -> dict[str, Any]:
    """The filter as the sidecar's direct wire has it, but for the request, which is not shown."""
    return {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            **_type("envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"),
            "grpc_service": {"envoy_grpc": {"cluster_name": "ext_proc"}, "timeout": "0s"},
            "processing_mode": {
                "request_header_mode": "SKIP",
                "response_header_mode": "SEND",
                "response_body_mode": "FULL_DUPLEX_STREAMED",
                "response_trailer_mode": "SEND",
            },
        },
    }


def _ext_proc_cluster(socket: Path) -> dict[str, Any]:
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    endpoint = {"endpoint": {"address": {"pipe": {"path": str(socket)}}}}
    return {
        "name": "ext_proc",
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [_LIMITS]},
        "typed_extension_protocol_options": {
            options: {**_type(options), "explicit_http_config": {"http2_protocol_options": {}}}
        },
        "load_assignment": {"cluster_name": "ext_proc", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _type(name: str) -> dict[str, str]:
    return {"@type": f"type.googleapis.com/{name}"}
