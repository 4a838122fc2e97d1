"""What a route of the admin interface is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from sidecar.identity.identity import Identity
from sidecar.identity.secret import Secret
from sidecar.responses.reply import Reply
from sidecar.store import Store


class Identifies(Protocol):
    """Tells who holds a credential."""

    async def identify(self, secret: Secret) -> Identity:
        """Raises :class:`ApiError` where nobody does, or that cannot be told now."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What handlers work with."""

    store: Store
    authenticator: Identifies


Handler = Callable[[Tools, web.Request], Awaitable[Reply]]
"""Answers a request, or raises :class:`ApiError`."""


@dataclass(frozen=True, slots=True)
class OpenPath:
    """A path to ``GET`` that needs no key, and no accounts."""

    path: str
    answer: Callable[[], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path, which may hold names in braces; ``scope`` is what a key must allow."""

    method: str
    path: str
    handle: Handler
    scope: str | None = "admin"
