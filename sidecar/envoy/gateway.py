"""What makes a proxy of Envoy Gateway's the sidecar's Envoy.

An ``HTTPRoute`` for each surface makes the routes, so that the policies of the operator's own hold for them;
``EnvoyExtensionPolicy`` puts the ext_proc filter where it belongs, behind those that authenticate; ``EnvoyPatchPolicy``
adds what these cannot say. Followed: Envoy Gateway 1.9, ``internal/xds/translator``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from sidecar.envoy.documents import Document, document, dumped
from sidecar.envoy.render import Names, render_existing
from sidecar.envoy.settings import EnvoySettings
from sidecar.surfaces import SURFACES
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.surface import Surface

_HEAD = """\
# Rendered by "responses-sidecar envoy render". Envoy Gateway's proxy must be Envoy 1.40 or later, and its pod must hold
# the sidecar: docs/envoy.md says how. Of Envoy Gateway's extensionApis, enableBackend and enableEnvoyPatchPolicy are
# needed.
"""
_API = "gateway.envoyproxy.io/v1alpha1"
_ROUTE_API = "gateway.networking.k8s.io/v1"
_LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener"
_ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
_CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
_MANAGER = "..filters[?(@.name=='envoy.filters.network.http_connection_manager')].typed_config"


@dataclass(frozen=True)
class Gateway:
    """A listener of a Gateway, and what Envoy Gateway calls its Envoy listener and its routes.

    Without these two names they are as XDS name scheme 1 has them.
    """

    host: str
    namespace: str = "default"
    name: str = "eg"
    listener: str = "http"
    envoy_listener: str | None = None
    envoy_routes: str | None = None

    @property
    def scheme_1(self) -> str:
        """The name of both in scheme 1."""
        return f"{self.namespace}/{self.name}/{self.listener}"

    @property
    def names(self) -> Names:
        """What Envoy Gateway calls the filter that our policy makes, and our routes."""
        filters = {**Names().filters, "ext_proc": _filter_of_the_policy(self.namespace)}
        return Names(filters, f"httproute/{self.namespace}/{Names().route_prefix}")

    def route(self, surface: str, rule: int, match: int) -> str:
        """What Envoy Gateway calls one of them."""
        return f"{self.names.route_prefix}{surface}-api/rule/{rule}/match/{match}/{self.host.replace('.', '_')}"


def _filter_of_the_policy(namespace: str) -> str:
    return f"envoy.filters.http.ext_proc/envoyextensionpolicy/{namespace}/responses/extproc/0"


def render_gateway(settings: EnvoySettings, gateway: Gateway) -> str:
    """A ``Backend``, ``HTTPRoute`` by surface, an ``EnvoyExtensionPolicy`` and an ``EnvoyPatchPolicy``, as YAML."""
    parts = yaml.safe_load(render_existing(settings, gateway.names, types_unknown=True))
    space, surfaces = gateway.namespace, {name: SURFACES[name] for name in settings.surfaces}
    routes = {f"responses-{name}-api": _http_route(surface, gateway) for name, surface in surfaces.items()}
    return dumped(
        _HEAD,
        [
            document(_API, "Backend", space, _backend(settings)),
            *(document(_ROUTE_API, "HTTPRoute", space, spec, name) for name, spec in routes.items()),
            document(_API, "EnvoyExtensionPolicy", space, _extension_policy(list(routes))),
            document(_API, "EnvoyPatchPolicy", space, _patch_policy(parts, surfaces, gateway)),
        ],
    )


def _backend(settings: EnvoySettings) -> Document:
    return {"endpoints": [{"unix": {"path": str(socket)}} for socket in settings.worker_sockets]}


def _http_route(surface: Surface, gateway: Gateway) -> Document:
    """Two rules: what needs a credential, and the OpenAPI document, which needs none."""
    prefixes = [{"path": {"type": "PathPrefix", "value": path}} for path in _prefixes(surface)]
    document = {"path": {"type": "Exact", "value": _openapi(surface)}}
    return {
        "parentRefs": [{"name": gateway.name, "sectionName": gateway.listener}],
        "hostnames": [gateway.host],
        "rules": [{"matches": matches, "backendRefs": [_BACKEND_REF]} for matches in (prefixes, [document])],
    }


def _prefixes(surface: Surface) -> list[str]:
    """The paths below which the surface answers with a credential."""
    paths = [endpoint.path for endpoint in surface.endpoints if endpoint.operation is not Operation.READ_OPENAPI]
    first = (path.removeprefix(surface.base).split("/")[1] for path in paths)
    return [f"{surface.base}/{segment}" for segment in dict.fromkeys(first)]


def _openapi(surface: Surface) -> str:
    (found,) = [one.path for one in surface.endpoints if one.operation is Operation.READ_OPENAPI]
    return found


_BACKEND_REF = {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "responses"}


def _extension_policy(routes: list[str]) -> Document:
    both = {"body": "FullDuplexStreamed"}
    mode = {"request": {**both, "attributes": ["connection.id"]}, "response": both}
    targets = [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name} for name in routes]
    return {"targetRefs": targets, "extProc": [{"backendRefs": [_BACKEND_REF], "processingMode": mode}]}


def _patch_policy(parts: Document, surfaces: dict[str, Surface], gateway: Gateway) -> Document:
    listener, routes = gateway.envoy_listener or gateway.scheme_1, gateway.envoy_routes or gateway.scheme_1
    clusters = [*parts["clusters"], *parts["egress_clusters"]]
    return {
        "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway.name},
        "type": "JSONPatch",
        "jsonPatches": [
            *(_patch(_CLUSTER, one["name"], op="add", value=one) for one in clusters),
            *(_patch(_LISTENER, one["name"], op="add", value=one) for one in parts.get("listeners", ())),
            *(_patch(_LISTENER, listener, **operation) for operation in _listener(parts, gateway)),
            *(_patch(_ROUTES, routes, **operation) for operation in _routes(parts, surfaces, gateway)),
        ],
    }


def _listener(parts: Document, gateway: Gateway) -> Iterator[Document]:
    """Its members and the connection manager's, then the filters: the first before all, the others at the policy's."""
    for name, value in parts["listener"].items():
        yield {"op": "add", "path": f"/{name}", "value": value}
    for name, value in parts["http_connection_manager"].items():
        yield {"op": "add", "jsonPath": _MANAGER, "path": f"/{name}", "value": value}
    filters = {one["name"]: one for one in parts["http_filters"]}
    first, ours = filters.pop(gateway.names.filters["strip_mark"]), filters.pop(gateway.names.filters["ext_proc"])
    # It runs on routes of its own, which are none of these.
    del filters[gateway.names.filters["grpc_refusal"]]
    yield {"op": "add", "jsonPath": f"{_MANAGER}.http_filters", "path": "/0", "value": first}
    place = f"..http_filters[?(@.name=='{ours['name']}')]"
    # To add at a place is to insert before what stands there.
    yield from ({"op": "add", "jsonPath": place, "value": one} for one in filters.values())
    yield {"op": "replace", "jsonPath": place, "value": ours}


def _routes(parts: Document, surfaces: dict[str, Surface], gateway: Gateway) -> Iterator[Document]:
    """What our own routes have, for those that Envoy Gateway makes of the ``HTTPRoute``."""
    ours = {route["name"]: route for route in parts["routes"]}
    for surface_name, surface in surfaces.items():
        prefix = f"{gateway.names.route_prefix}{surface_name}"
        places = [(0, match, "responses") for match in range(len(_prefixes(surface)))] + [(1, 0, "openapi")]
        for rule, match, kind in places:
            place = f"..routes[?(@.name=='{gateway.route(surface_name, rule, match)}')]"
            yield {"op": "replace", "jsonPath": f"{place}.route", "value": ours[f"{prefix}-responses"]["route"]}
            for name, value in ours[f"{prefix}-{kind}"]["typed_per_filter_config"].items():
                # JSON pointers have ~1 for a slash (RFC 6901).
                path = "/typed_per_filter_config/" + name.replace("/", "~1")
                yield {"op": "add", "jsonPath": place, "path": path, "value": value}


def _patch(kind: str, resource: str, **operation: Any) -> Document:
    return {"type": kind, "name": resource, "operation": operation}
