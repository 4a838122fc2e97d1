"""Renders the templates of Envoy's configuration."""

from __future__ import annotations

from math import isfinite
from typing import Any

import jinja2

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


def render(settings: EnvoySettings) -> str:
    """Envoy's configuration as YAML.

    The types and the ``Retry-After`` of Envoy's own errors come from the sidecar's table of codes.
    """
    variables = {name: getattr(settings, name) for name in EnvoySettings.__dataclass_fields__}
    variables["surfaces"] = [_surface(name, settings) for name in settings.surfaces]
    return _TEMPLATES.get_template("node.yaml.j2").render(
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
