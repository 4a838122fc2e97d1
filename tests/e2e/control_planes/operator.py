"""An operator's Envoy with a service, a filter and a shape of errors of its own, and our parts put where they say."""

from __future__ import annotations

from typing import Any

from sidecar.envoy.settings import EnvoySettings
from tests.e2e.control_planes.authentication import admin, jwt_filter, router, typed

OWN_PATH = "/shop"


def before(settings: EnvoySettings) -> dict[str, Any]:
    """The operator's Envoy as it was."""
    manager = {
        **typed("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "front",
        "stream_idle_timeout": "1s",
        "http_filters": [jwt_filter(), router()],
        "local_reply_config": {"mappers": [_own_errors()]},
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [_own_route()]}]},
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    address = {"socket_address": {"address": "127.0.0.1", "port_value": settings.port}}
    return {
        "admin": admin(settings.admin_socket),
        "static_resources": {
            "listeners": [{"name": "front", "address": address, "filter_chains": [{"filters": filters}]}],
            "clusters": [],
        },
    }


def merge(config: dict[str, Any], parts: dict[str, Any], *, with_egress: bool) -> dict[str, Any]:
    """``config`` with our parts; without its egress where an Envoy of the form for that runs beside it."""
    resources = config["static_resources"]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    resources["listeners"][0].update(parts["listener"])
    ours = parts["http_connection_manager"]
    manager["local_reply_config"]["mappers"][:0] = ours.pop("local_reply_config")["mappers"]
    assert not ours.keys() & manager.keys()
    manager.update(ours)
    manager["http_filters"][-1:-1] = parts["http_filters"]
    manager["route_config"]["virtual_hosts"][0]["routes"][:0] = parts["routes"]
    resources["clusters"] += parts["clusters"]
    if with_egress:
        resources["listeners"] += parts.get("listeners", [])
        resources["clusters"] += parts["egress_clusters"]
    return config


def _own_route() -> dict[str, Any]:
    body = {"inline_string": "open"}
    return {"name": "shop", "match": {"prefix": OWN_PATH}, "direct_response": {"status": 200, "body": body}}


def _own_errors() -> dict[str, Any]:
    any_error = {"op": "GE", "value": {"default_value": 400, "runtime_key": "own_errors"}}
    return {
        "filter": {"status_code_filter": {"comparison": any_error}},
        "body_format_override": {"text_format_source": {"inline_string": "sorry"}},
    }
