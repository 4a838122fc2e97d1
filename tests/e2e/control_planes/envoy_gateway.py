"""What Envoy Gateway makes of our resources: its listener, routes and clusters, and the JSON patches applied to them.

Followed: ``internal/xds/translator`` and ``internal/utils/jsonpatch`` of Envoy Gateway 1.9, as far as our resources
need it, with the names of scheme 1. The ``SecurityPolicy`` of an operator's is there as its filter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sidecar.envoy.settings import EnvoySettings
from tests.e2e.control_planes.authentication import admin, jwt_filter, router, typed

NAME = "default/eg/http"
Resources = dict[str, dict[str, dict[str, Any]]]
LISTENERS = "type.googleapis.com/envoy.config.listener.v3.Listener"
ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
CLUSTERS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"


def translate(settings: EnvoySettings, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """The whole configuration of the proxy, its routes inside its listener rather than sent for themselves."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
    resources = _resources(settings, by_kind)
    for patch in by_kind["EnvoyPatchPolicy"][0]["spec"]["jsonPatches"]:
        _apply(resources, patch)
    manager = resources[LISTENERS][NAME]["default_filter_chain"]["filters"][0]["typed_config"]
    manager["route_config"] = resources[ROUTES][NAME]
    return {
        "admin": admin(settings.admin_socket),
        "static_resources": {
            "listeners": list(resources[LISTENERS].values()),
            "clusters": list(resources[CLUSTERS].values()),
        },
    }


def _resources(settings: EnvoySettings, by_kind: dict[str, list[dict[str, Any]]]) -> Resources:
    (policy,), (backend,) = by_kind["EnvoyExtensionPolicy"], by_kind["Backend"]
    extension = f"envoyextensionpolicy/{policy['metadata']['namespace']}/{policy['metadata']['name']}/extproc/0"
    filter_name = f"envoy.filters.http.ext_proc/{extension}"
    targets = {target["name"] for target in policy["spec"]["targetRefs"]}
    routes = [route for document in by_kind["HTTPRoute"] for route in _routes(document, filter_name, targets)]
    (host,) = {document["spec"]["hostnames"][0] for document in by_kind["HTTPRoute"]}
    names = {route["route"]["cluster"] for route in routes} | {extension}
    return {
        LISTENERS: {NAME: _listener(settings.port, filter_name, extension)},
        ROUTES: {NAME: {"name": NAME, "virtual_hosts": [{"name": "v", "domains": [host], "routes": routes}]}},
        CLUSTERS: {name: _cluster(name, backend) for name in names},
    }


def _listener(port: int, filter_name: str, extension: str) -> dict[str, Any]:
    processor = {
        **typed("envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"),
        "grpc_service": {"envoy_grpc": {"cluster_name": extension}, "timeout": "10s"},
    }
    manager = {
        **typed("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "common_http_protocol_options": {"headers_with_underscores_action": "REJECT_REQUEST"},
        "http_filters": [
            jwt_filter(),
            {"name": filter_name, "disabled": True, "typed_config": processor},
            router(),
        ],
        "merge_slashes": True,
        "normalize_path": True,
        "path_with_escaped_slashes_action": "UNESCAPE_AND_REDIRECT",
        "server_header_transformation": "PASS_THROUGH",
        "stat_prefix": f"http-{port}",
        "use_remote_address": True,
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    return {
        "name": NAME,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "default_filter_chain": {"name": NAME, "filters": filters},
        "per_connection_buffer_limit_bytes": 32768,
    }


def _routes(document: dict[str, Any], filter_name: str, targets: set[str]) -> Iterator[dict[str, Any]]:
    name, host = document["metadata"]["name"], document["spec"]["hostnames"][0].replace(".", "_")
    assert name in targets
    for rule, one in enumerate(document["spec"]["rules"]):
        cluster = f"httproute/{document['metadata']['namespace']}/{name}/rule/{rule}"
        for match, found in enumerate(one["matches"]):
            kind = {"PathPrefix": "path_separated_prefix", "Exact": "path"}[found["path"]["type"]]
            yield {
                "name": f"{cluster}/match/{match}/{host}",
                "match": {kind: found["path"]["value"]},
                "route": {"cluster": cluster, "upgrade_configs": [{"upgrade_type": "websocket"}]},
                "typed_per_filter_config": {filter_name: {**typed("envoy.config.route.v3.FilterConfig"), "config": {}}},
            }


def _cluster(name: str, backend: dict[str, Any]) -> dict[str, Any]:
    paths = [{"pipe": {"path": endpoint["unix"]["path"]}} for endpoint in backend["spec"]["endpoints"]]
    endpoints = [{"endpoint": {"address": path}} for path in paths]
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _apply(resources: Resources, patch: dict[str, Any]) -> None:
    operation, found = patch["operation"], resources[patch["type"]]
    if operation["op"] == "add" and not operation.keys() & {"path", "jsonPath"}:
        assert patch["name"] == operation["value"]["name"]
        found[patch["name"]] = operation["value"]
        return
    places = list(_locate(found[patch["name"]], operation["jsonPath"])) if "jsonPath" in operation else [()]
    assert places, operation["jsonPath"]
    for place in places:
        _set(found[patch["name"]], [*place, *_pointer(operation.get("path", ""))], operation)


def _set(document: Any, steps: list[str], operation: dict[str, Any]) -> None:
    """The JSON patches (RFC 6902) add and replace."""
    *parents, last = steps
    for step in parents:
        document = document[int(step)] if isinstance(document, list) else document[step]
    if isinstance(document, dict):
        assert operation["op"] == "add" or last in document
        document[last] = operation["value"]
    elif operation["op"] == "add":
        document.insert(int(last), operation["value"])
    else:
        document[int(last)] = operation["value"]


def _pointer(text: str) -> list[str]:
    """The steps of a JSON pointer (RFC 6901)."""
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


_PATH = re.compile(r"\.\.(\w+)\[\?\(@\.name=='([^']+)'\)\]((?:\.\w+)*)")


def _locate(document: Any, path: str) -> Iterator[tuple[str, ...]]:
    """The places of a JSON path of the form that ours have: a list's member of a name, anywhere, and on from there."""
    matched = _PATH.fullmatch(path)
    assert matched is not None, path
    key, name, rest = matched.groups()
    for place, lists in _members(document, key):
        yield from (
            (*place, str(index), *rest.split(".")[1:]) for index, one in enumerate(lists) if one.get("name") == name
        )


def _members(document: Any, key: str, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Every list of the name ``key``, and where it is."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key and isinstance(value, list):
                yield (*place, name), value
            yield from _members(value, key, (*place, name))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from _members(value, key, (*place, str(index)))
