"""A credential as the store knows it, and whether it still counts."""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest

from sidecar.identity.identity import Identity
from sidecar.identity.secret import Kind
from sidecar.responses.errors import ApiError

_NAMES = {Kind.KEY: "API key", Kind.TOKEN: "API token", Kind.SESSION: "session", Kind.PROJECT: "API key"}


@dataclass(frozen=True, slots=True)
class Known:
    """What was read of a credential: ``expires_at`` in seconds on this process's monotonic clock."""

    kind: Kind
    digest: bytes
    identity: Identity
    expires_at: float | None
    revoked: bool
    replaced: bool
    disabled: bool


def admit(digest: bytes, known: Known | None, at: float) -> Identity:
    """Who holds the credential with this digest, of which ``known`` was found; ``at`` is the monotonic clock.

    Raises:
        ApiError: ``unauthorized``: it is unknown, revoked, replaced or expired, or its organization is disabled.
            Whoever is told which of them has the whole secret, so it says nothing to others.
    """
    if known is None or not compare_digest(known.digest, digest):
        raise ApiError("unauthorized", "The credential is unknown.")
    name = _NAMES[known.kind]
    if known.revoked:
        raise ApiError("unauthorized", f"The {name} was revoked.")
    if known.expires_at is not None and known.expires_at <= at:
        raise ApiError("unauthorized", f"The {name} has {'been replaced by another' if known.replaced else 'expired'}.")
    if known.disabled:
        raise ApiError("unauthorized", f"The organization of the {name} is disabled.")
    return known.identity
