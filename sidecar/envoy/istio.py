"""What makes Istio's proxy in a node's pod the sidecar's Envoy.

The proxy's inbound listener has Istio's own TLS, authentication and authorization before what is added here. Followed:
the matches and operations of ``EnvoyFilter`` as Istio 1.32 applies them (``pilot/pkg/networking/core/envoyfilter``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from sidecar.envoy.documents import Document, document, dumped
from sidecar.envoy.render import render_existing
from sidecar.envoy.settings import EnvoySettings

_HEAD = """\
# Rendered by "responses-sidecar envoy render". Istio's proxy must be Envoy 1.40 or later, and share the sockets'
# directory and the user with the sidecar: docs/envoy.md has the pod's annotations.
"""
_INBOUND = "SIDECAR_INBOUND"
_MANAGER = "envoy.filters.network.http_connection_manager"
_MANAGER_TYPE = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


@dataclass(frozen=True)
class Workload:
    """The pods: their namespace, and the labels that they have."""

    namespace: str = "default"
    labels: tuple[tuple[str, str], ...] = (("app", "responses"),)


def render_istio(settings: EnvoySettings, workload: Workload) -> str:
    """An ``EnvoyFilter`` for the port ``settings.port`` of the pods, as YAML."""
    parts = yaml.safe_load(render_existing(settings, types_unknown=True))
    patches = [
        *(_added("CLUSTER", cluster) for cluster in (*parts["clusters"], *parts["egress_clusters"])),
        *(_added("LISTENER", listener) for listener in parts.get("listeners", ())),
        _patch("LISTENER", {"context": _INBOUND, "listener": {"name": "virtualInbound"}}, "MERGE", parts["listener"]),
        *_manager(parts, settings.port),
        *(_route(route, settings.port) for route in reversed(parts["routes"])),
    ]
    spec = {"workloadSelector": {"labels": dict(workload.labels)}, "configPatches": patches}
    return dumped(_HEAD, [document("networking.istio.io/v1alpha3", "EnvoyFilter", workload.namespace, spec)])


def _added(what: str, value: Any) -> Document:
    return _patch(what, {"context": _INBOUND}, "ADD", value)


def _manager(parts: Document, port: int) -> list[Document]:
    """The members of the connection manager, and its filters: the first before all, the others before the router."""
    first, *others = parts["http_filters"]
    merged = {"name": _MANAGER, "typed_config": {"@type": _MANAGER_TYPE, **parts["http_connection_manager"]}}
    return [
        _patch("NETWORK_FILTER", _at(port), "MERGE", merged),
        _patch("HTTP_FILTER", _at(port), "INSERT_FIRST", first),
        *(_patch("HTTP_FILTER", _at(port, "envoy.filters.http.router"), "INSERT_BEFORE", one) for one in others),
    ]


def _at(port: int, http_filter: str | None = None) -> Document:
    inner = {"subFilter": {"name": http_filter}} if http_filter else {}
    chain = {"filter": {"name": _MANAGER, **inner}}
    return {"context": _INBOUND, "listener": {"portNumber": port, "filterChain": chain}}


def _route(route: Document, port: int) -> Document:
    """Each goes before all that are there, so the last one comes first."""
    return _patch(
        "HTTP_ROUTE", {"context": _INBOUND, "routeConfiguration": {"portNumber": port}}, "INSERT_FIRST", route
    )


def _patch(what: str, match: Document, operation: str, value: Any) -> Document:
    return {"applyTo": what, "match": match, "patch": {"operation": operation, "value": value}}
