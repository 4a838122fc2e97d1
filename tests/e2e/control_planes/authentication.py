"""An operator's own authentication: Envoy's filter for JSON Web Tokens, which tells the organization in a header."""

from __future__ import annotations

from typing import Any

from tests.e2e.test_own_authentication import jwks, token

TRUSTED = {"identity": {"trusted": {"organization": {"header": "x-tenant"}}}}
"""The sidecar's settings."""


def jwt_filter() -> dict[str, Any]:
    """The filter, which wants a token on all paths but the documents'."""
    provider = {
        "issuer": "https://login.example.com",
        "audiences": ["responses"],
        "local_jwks": {"inline_string": jwks()},
        "claim_to_headers": [{"header_name": "x-tenant", "claim_name": "org"}],
    }
    return {
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            **typed("envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"),
            "providers": {"company": provider},
            "rules": [
                {"match": {"path": "/v1/infer/openapi.json"}},
                {"match": {"prefix": "/"}, "requires": {"provider_name": "company"}},
            ],
        },
    }


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
