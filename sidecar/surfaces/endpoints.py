"""The endpoints of a surface: which one a request is for is its first decision, made by method and path alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import unquote

from sidecar.responses.errors import ApiError


class Operation(Enum):
    """What an endpoint does."""

    CREATE_RESPONSE = auto()
    LIST_MODELS = auto()
    RETRIEVE_MODEL = auto()
    READ_OPENAPI = auto()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path. A path that ends with ``/{id}`` takes the rest of a path as its id, slashes included."""

    method: str
    path: str
    operation: Operation

    def match(self, path: str) -> str | None:
        """The id in ``path``, empty where the endpoint has none; ``None`` when ``path`` is not this endpoint's."""
        prefix, braces, _ = self.path.partition("{id}")
        if not braces:
            return "" if path == self.path else None
        # Clients send ids that hold slashes percent-encoded or as they are.
        return unquote(path.removeprefix(prefix)) or None if path.startswith(prefix) else None


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is for: an operation, and the id in its path (empty where it has none)."""

    operation: Operation
    id: str


def find_target(endpoints: Iterable[Endpoint], method: str, path: str) -> Target:
    """The target of a request; ``path`` is its ``:path``, whose query is ignored.

    Raises:
        ApiError: ``not_found``, or ``method_not_allowed`` where the path takes another method.
    """
    path = path.partition("?")[0]
    allowed = ""
    for endpoint in endpoints:
        found = endpoint.match(path)
        if found is not None and endpoint.method == method:
            return Target(endpoint.operation, found)
        if found is not None:
            allowed = endpoint.method
    if allowed:
        raise ApiError("method_not_allowed", f"Only {allowed} is allowed here.", allow=allowed)
    raise ApiError("not_found", "There is nothing at this path.")
