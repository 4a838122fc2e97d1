"""The inbound listener of Istio's proxy, and an ``EnvoyFilter`` applied to it in Istio's order.

Followed: ``pilot/pkg/networking/core`` of Istio 1.32, as far as our patches need it. What takes traffic out of iptables
is not there: the listener is on the port itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sidecar.envoy.settings import EnvoySettings
from tests.e2e.control_planes.authentication import admin, jwt_filter, router, typed

MANAGER = "envoy.filters.network.http_connection_manager"
Patch = dict[str, Any]


def before(settings: EnvoySettings) -> dict[str, Any]:
    """A proxy of a pod whose port takes HTTP, with ``RequestAuthentication`` and ``AuthorizationPolicy``."""
    port = settings.port
    cluster = f"inbound|{port}||"
    route = {"name": "default", "match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}
    manager = {
        **typed("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": f"inbound_0.0.0.0_{port};",
        "server_name": "istio-envoy",
        "use_remote_address": False,
        "normalize_path": True,
        "http_filters": [jwt_filter(), _rbac(), router()],
        "route_config": {
            "name": cluster,
            "validate_clusters": False,
            "virtual_hosts": [{"name": f"inbound|http|{port}", "domains": ["*"], "routes": [route]}],
        },
    }
    listener = {
        "name": "virtualInbound",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [
            {
                "name": f"0.0.0.0_{port}",
                "filter_chain_match": {"destination_port": port},
                "filters": [{"name": MANAGER, "typed_config": manager}],
            }
        ],
    }
    own = {"name": cluster, "type": "STATIC", "load_assignment": {"cluster_name": cluster}}
    resources = {"listeners": [listener], "clusters": [own]}
    return {"admin": admin(settings.admin_socket), "static_resources": resources}


def apply(config: dict[str, Any], envoy_filter: dict[str, Any]) -> dict[str, Any]:
    """``config`` with all patches, each of which must find its place."""
    patches: list[Patch] = envoy_filter["spec"]["configPatches"]
    for what in ("NETWORK_FILTER", "HTTP_FILTER", "HTTP_ROUTE", "LISTENER", "CLUSTER"):
        for patch in patches:
            if patch["applyTo"] == what:
                assert patch["match"]["context"] == "SIDECAR_INBOUND"
                _APPLY[what](config["static_resources"], patch["match"], patch["patch"])
    assert {patch["applyTo"] for patch in patches} <= _APPLY.keys()
    return config


def _manager(resources: dict[str, Any], match: dict[str, Any]) -> dict[str, Any]:
    """The typed configuration of the connection manager that is matched."""
    wanted = match["listener"]
    (chain,) = (
        chain
        for listener in resources["listeners"]
        if listener["name"] == "virtualInbound"
        for chain in listener["filter_chains"]
        if chain["filter_chain_match"]["destination_port"] == wanted["portNumber"]
    )
    (found,) = (one for one in chain["filters"] if one["name"] == wanted["filterChain"]["filter"]["name"])
    typed_config: dict[str, Any] = found["typed_config"]
    return typed_config


def _network_filter(resources: dict[str, Any], match: dict[str, Any], patch: dict[str, Any]) -> None:
    manager, value = _manager(resources, match), patch["value"]["typed_config"]
    assert patch["operation"] == "MERGE"
    # Protobuf's merge: what is not there is taken, and none of ours is there already.
    assert {name for name in value if name in manager} == {"@type"}
    manager.update(value)


def _http_filter(resources: dict[str, Any], match: dict[str, Any], patch: dict[str, Any]) -> None:
    filters: list[dict[str, Any]] = _manager(resources, match)["http_filters"]
    if patch["operation"] == "INSERT_FIRST":
        filters.insert(0, patch["value"])
        return
    assert patch["operation"] == "INSERT_BEFORE"
    before_it = match["listener"]["filterChain"]["filter"]["subFilter"]["name"]
    (place,) = (index for index, one in enumerate(filters) if one["name"] == before_it)
    filters.insert(place, patch["value"])


def _http_route(resources: dict[str, Any], match: dict[str, Any], patch: dict[str, Any]) -> None:
    port = match["routeConfiguration"]["portNumber"]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    configuration = manager["route_config"]
    assert (configuration["name"], patch["operation"]) == (f"inbound|{port}||", "INSERT_FIRST")
    for host in configuration["virtual_hosts"]:
        host["routes"].insert(0, patch["value"])


def _listener(resources: dict[str, Any], match: dict[str, Any], patch: dict[str, Any]) -> None:
    if patch["operation"] == "ADD":
        resources["listeners"].append(patch["value"])
        return
    assert patch["operation"] == "MERGE"
    (found,) = (one for one in resources["listeners"] if one["name"] == match["listener"]["name"])
    assert not found.keys() & patch["value"].keys()
    found.update(patch["value"])


def _cluster(resources: dict[str, Any], _match: dict[str, Any], patch: dict[str, Any]) -> None:
    assert patch["operation"] == "ADD"
    resources["clusters"].append(patch["value"])


_APPLY: dict[str, Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], None]] = {
    "NETWORK_FILTER": _network_filter,
    "HTTP_FILTER": _http_filter,
    "HTTP_ROUTE": _http_route,
    "LISTENER": _listener,
    "CLUSTER": _cluster,
}


def _rbac() -> dict[str, Any]:
    anybody = {"permissions": [{"any": True}], "principals": [{"any": True}]}
    rules = {"action": "ALLOW", "policies": {"ns[default]-policy[all]-rule[0]": anybody}}
    return {
        "name": "envoy.filters.http.rbac",
        "typed_config": {**typed("envoy.extensions.filters.http.rbac.v3.RBAC"), "rules": rules},
    }
