"""Organizations and keys for the tests of what asks for a key, and who knows them."""

from __future__ import annotations

from sidecar.config.identity import IdentityConfig
from sidecar.identity.authenticator import Authenticator
from sidecar.identity.organizations import create
from sidecar.identity.records import Terms, issue
from sidecar.identity.secret import Kind
from sidecar.store import Store, connect

IMMEDIATE = IdentityConfig(cache_seconds=0.001, negative_cache_seconds=0.001)


def authenticator(store: Store) -> Authenticator:
    """Remembers next to nothing."""
    return Authenticator(store, IMMEDIATE, stale=False)


def organization(url: str, name: str) -> str:
    """A new organization; its id."""
    with connect(url) as connection:
        return create(connection, name, prepaid=False).id


def key(url: str, organization: str, *scopes: str) -> tuple[str, str]:
    """A new key with ``scopes``: its secret and its id."""
    with connect(url) as connection:
        secret, record = issue(connection, Terms(Kind.KEY, organization, frozenset(scopes)))
    return secret.text, record.id
