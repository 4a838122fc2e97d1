"""Renders the templates of Envoy's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import jinja2

from sidecar.config.identity import TrustedIdentity
from sidecar.envoy.settings import EnvoySettings
from sidecar.responses.caller import CALLER_HEADERS
from sidecar.responses.errors import CODES, ApiError
from sidecar.surfaces import SURFACES

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("sidecar.envoy"),
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_KINDS = ("strip_mark", "ext_authz", "body_size_limit", "ext_proc", "grpc_refusal")


@dataclass(frozen=True)
class Names:
    """What ours are called where an operator may have filters of the same kinds, and routes.

    ``filters`` are the HTTP filters by their kind; ``route_prefix`` is what our routes' names begin with.
    """

    filters: Mapping[str, str] = field(default_factory=lambda: {kind: f"responses.{kind}" for kind in _KINDS})
    route_prefix: str = "responses-"


# Envoy's own names, so that the examples of its documentation can be followed.
_OF_A_NODE = Names(
    {
        "strip_mark": "strip-local-reply-mark",
        "ext_authz": "envoy.filters.http.ext_authz",
        "body_size_limit": "envoy.filters.http.body_size_limit",
        "ext_proc": "envoy.filters.http.ext_proc",
        "grpc_refusal": "envoy.filters.http.lua",
    },
    route_prefix="",
)


def render(settings: EnvoySettings) -> str:
    """The whole configuration of a node's Envoy, as YAML.

    The types and the ``Retry-After`` of Envoy's own errors come from the sidecar's table of codes.
    """
    return _rendered("node", settings, _OF_A_NODE)


def render_egress(settings: EnvoySettings) -> str:
    """The whole configuration of an Envoy that has only the egress listener, as YAML."""
    return _rendered("egress", settings, _OF_A_NODE)


def render_existing(settings: EnvoySettings, names: Names = Names(), *, types_unknown: bool = False) -> str:
    """What an operator's Envoy needs besides what it has, as YAML with a member for each place.

    With ``types_unknown`` types that a control plane may not know are passed through it as structures.
    """
    trusted = settings.trusted and _trusted(settings.trusted)
    return _rendered(
        "existing", settings, names, merged=True, trusted=trusted, types_unknown=types_unknown, traces=None
    )


def _rendered(template: str, settings: EnvoySettings, names: Names, **more: Any) -> str:
    variables = {name: getattr(settings, name) for name in EnvoySettings.__dataclass_fields__}
    variables["surfaces"] = [_surface(name, settings) for name in settings.surfaces]
    return _TEMPLATES.get_template(f"{template}.yaml.j2").render(
        **{**variables, "merged": False, "trusted": None, "types_unknown": False, **more},
        filters=names.filters,
        route_prefix=names.route_prefix,
        admin_socket=settings.admin_socket,
        egress_socket=settings.egress_socket,
        codes=CODES,
        caller_headers=CALLER_HEADERS,
    )


def _trusted(identity: TrustedIdentity) -> dict[str, Any]:
    """Which headers an operator's authentication sets, and whether it leaves claims."""
    sources = [source for source in (identity.organization, identity.key, identity.user, identity.scopes) if source]
    return {
        "headers": [source.header for source in sources if source.header is not None],
        "claims": any(source.claim is not None for source in sources),
    }


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
