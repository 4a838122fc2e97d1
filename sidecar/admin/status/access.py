"""Who may see the status page's data: at a loopback address the users of this machine, else who holds a key for it.

A page of somebody else, opened in a browser on this machine, reaches a loopback address too: under a name of its own
that leads there (DNS rebinding), or by a request whose answer it may not read. So the name that was asked for must be
one of this machine's, and what does something must come from the page itself.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from sidecar.admin.route import Identifies
from sidecar.identity.presented import presented
from sidecar.responses.errors import ApiError

SCOPE = "admin"

_LOCALHOST = "localhost"
# What proxies add: who comes through one may be anybody.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def is_loopback(address: str) -> bool:
    """Whether ``address`` (``host:port``, or a host alone) is reachable from this machine alone."""
    try:
        host = urlsplit(f"//{address}").hostname or ""
        return host == _LOCALHOST or ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """Lets requests in; without an ``authenticator`` nobody has a key."""

    def __init__(self, address: str, authenticator: Identifies | None) -> None:
        """``address`` (``host:port``) is where the admin interface listens."""
        self._is_loopback = is_loopback(address)
        self._authenticator = authenticator

    def is_open(self, request: web.Request) -> bool:
        """Whether ``request`` needs no key for what names no organization."""
        return self._is_loopback and is_loopback(request.host) and not any(map(request.headers.get, _FORWARDED))

    async def require(self, request: web.Request) -> None:
        """Go on only where ``request`` may see what the node does.

        Raises:
            ApiError: it needs a key, and has none that allows it.
        """
        if not self.is_open(request):
            await self.require_key(request)

    async def require_key(self, request: web.Request) -> None:
        """Go on only where ``request`` has a key with the scope ``admin``.

        Raises:
            ApiError: it has none.
        """
        if self._authenticator is None:
            raise ApiError("forbidden", "Without accounts this is for 127.0.0.1 and localhost alone.")
        secret = presented({"authorization": request.headers.getall("authorization", [])}, request.host)
        (await self._authenticator.identify(secret)).require(SCOPE)


def require_own_page(request: web.Request) -> None:
    """Go on only where ``request`` was not made by a page of another site.

    Raises:
        ApiError: ``forbidden``.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # Browsers tell the site only to https and to this machine itself. Other programs tell neither.
    own = site == "same-origin" if site is not None else origin in (None, f"{request.scheme}://{request.host}")
    if not own:
        raise ApiError("forbidden", "This is for the status page itself alone.")
