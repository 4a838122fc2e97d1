"""An operator's own authentication as docs/envoy.md has it: JSON Web Tokens, whose organization comes in a header."""

from __future__ import annotations

from typing import Any

import yaml

from stack.paths import ROOT
from tests.e2e.test_own_authentication import jwks, token

_BLOCKS = [block.partition("```")[0] for block in (ROOT / "docs" / "envoy.md").read_text().split("```yaml\n")[1:]]
TRUSTED: dict[str, Any] = yaml.safe_load(_BLOCKS[0])
"""The sidecar's settings."""


def jwt_filter() -> dict[str, Any]:
    """The filter, with the keys that sign the tests' tokens."""
    found: dict[str, Any] = yaml.safe_load(_BLOCKS[1])
    found["typed_config"]["providers"]["company"]["local_jwks"] = {"inline_string": jwks()}
    return found


def credential() -> str:
    """What goes behind "Bearer"."""
    return token(org="acme")


def typed(name: str) -> dict[str, str]:
    """The member that says what type a configuration has."""
    return {"@type": f"type.googleapis.com/{name}"}


def router() -> dict[str, Any]:
    """The last of the HTTP filters."""
    return {
        "name": "envoy.filters.http.router",
        "typed_config": typed("envoy.extensions.filters.http.router.v3.Router"),
    }


def admin(socket: Any) -> dict[str, Any]:
    """Envoy's admin interface on a socket, by which the tests know that it is ready."""
    return {"address": {"pipe": {"path": str(socket), "mode": 0o600}}}
