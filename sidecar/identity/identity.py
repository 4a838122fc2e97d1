"""Who a request is from and what it may do, once that is known."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError

SCOPES = {
    "infer:run": "create responses",
    "infer:read": "list the models",
    "usage:read": "read the usage records of all organizations",
    "admin": "make and end sessions",
}
"""What a credential can allow, by the name of the scope."""

INFERENCE = frozenset({"infer:run", "infer:read"})
"""The scopes of a credential that was made without naming any."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Someone who is known; ``scopes`` are keys of :data:`SCOPES`."""

    caller: Caller
    scopes: frozenset[str]

    def require(self, scope: str) -> None:
        """Go on only where ``scope`` is allowed.

        Raises:
            ApiError: ``forbidden``; the message names the scope.
        """
        if scope not in self.scopes:
            raise ApiError("forbidden", f"The scope {scope} is needed, which these credentials do not have.")


def parse_scopes(text: str) -> frozenset[str]:
    """The scopes in ``text``, separated by spaces.

    Raises:
        ValueError: there are none, or one is unknown; the message is for a person.
    """
    scopes = frozenset(text.split())
    if unknown := sorted(scopes - SCOPES.keys()):
        raise ValueError(f"there is no scope {unknown[0]}; the scopes are {', '.join(SCOPES)}")
    if not scopes:
        raise ValueError(f"at least one scope is needed; the scopes are {', '.join(SCOPES)}")
    return scopes
