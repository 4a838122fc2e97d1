"""The endpoints of a surface: which one a request is for is its first decision, made by method and path alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, auto
from urllib.parse import unquote

from sidecar.responses.errors import ApiError
from sidecar.responses.wording import shown

_MAX_COMPARED = 128
"""Characters of a mistaken path that are compared with the right ones: the comparison takes quadratic time."""

SESSION_COOKIE = "__Host-b3os_session"
"""The cookie by which a browser shows that its user has logged in, where it shows no key."""


class Operation(Enum):
    """What an endpoint does."""

    CREATE_RESPONSE = auto()
    COMPACT_RESPONSE = auto()
    RETRIEVE_RESPONSE = auto()
    DELETE_RESPONSE = auto()
    LIST_INPUT_ITEMS = auto()
    RETRIEVE_REQUEST = auto()
    LIST_REQUESTS = auto()
    LIST_MODELS = auto()
    RETRIEVE_MODEL = auto()
    READ_OPENAPI = auto()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path, which may hold one ``{id}``, anywhere in it.

    An id is one segment of a path, in which a slash is percent-encoded; with ``slashes``, as it is too. ``scope`` is
    what a credential must allow; an endpoint without one needs no credential.
    """

    method: str
    path: str
    operation: Operation
    scope: str | None
    slashes: bool = False

    def match(self, path: str) -> str | None:
        """The id in ``path``, empty where the endpoint has none; ``None`` when ``path`` is not this endpoint's."""
        prefix, braces, suffix = self.path.partition("{id}")
        if not braces:
            return "" if path == self.path else None
        found = path[len(prefix) : len(path) - len(suffix)]
        if not found or path != prefix + found + suffix or ("/" in found and not self.slashes):
            return None
        return unquote(found)


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is for: an operation, the id in its path (empty where it has none), and the scope it needs."""

    operation: Operation
    id: str
    scope: str | None


def find_target(endpoints: Sequence[Endpoint], method: str, path: str) -> Target:
    """The target of a request; ``path`` is its ``:path``, whose query is ignored.

    Raises:
        ApiError: ``not_found``, or ``method_not_allowed`` where the path takes another method.
    """
    path = path.partition("?")[0]
    allowed: list[str] = []
    for endpoint in endpoints:
        found = endpoint.match(path)
        if found is not None and endpoint.method == method:
            return Target(endpoint.operation, found, endpoint.scope)
        if found is not None:
            allowed.append(endpoint.method)
    if allowed:
        message = f"{shown(method)} is not allowed at {shown(path)}; use {' or '.join(allowed)}."
        raise ApiError("method_not_allowed", message, allow=", ".join(allowed))
    meant = _closest(endpoints, method, path)
    raise ApiError("not_found", f"There is no {shown(method)} {shown(path)}; use {meant.method} {meant.path}.")


def _closest(endpoints: Sequence[Endpoint], method: str, path: str) -> Endpoint:
    """The endpoint that a mistaken request most likely meant."""

    def likeness(endpoint: Endpoint) -> float:
        same_method = 0.1 if endpoint.method == method else 0.0
        return SequenceMatcher(None, path[:_MAX_COMPARED], endpoint.path).ratio() + same_method

    return max(endpoints, key=likeness)
