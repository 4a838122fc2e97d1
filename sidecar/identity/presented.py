"""What a request shows of who it is from: exactly one credential, in a header or in the session's cookie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from sidecar.identity.secret import Kind, Secret
from sidecar.responses.errors import ApiError
from sidecar.surfaces.credentials import KEYS_AND_SESSIONS, Credentials
from sidecar.surfaces.endpoints import SESSION_COOKIE

Headers = Mapping[str, Sequence[str]]
"""All values of each header, by its lower-case name."""

_SAME_SITE = ("same-origin", "none")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def presented(headers: Headers, host: str, taken: Credentials = KEYS_AND_SESSIONS) -> Secret:
    """The one credential of a request, which is whole and of those that are ``taken``.

    ``host`` is what the request was sent to (``:authority``). Nothing else is looked at: a key in the query is none.

    Raises:
        ApiError: ``unauthorized``: there is none, more than one, or one that is not whole. ``forbidden``: another site
            has made a browser send its cookie.
    """
    authorizations = _values(headers, "authorization")
    bare = _values(headers, taken.key_header) if taken.key_header else []
    sessions = _session_cookies(headers) if taken.sessions else []
    if len(authorizations) + len(bare) + len(sessions) > 1:
        raise ApiError("unauthorized", "More than one credential was sent; send exactly one.")
    if authorizations:
        return _bearer(authorizations[0], taken)
    if bare:
        return _key(bare[0], taken)
    if sessions:
        _refuse_other_sites(headers, host)
        return _session(sessions[0])
    raise ApiError("unauthorized", "No API key was sent; send it as Authorization: Bearer …")


def _values(headers: Headers, name: str) -> list[str]:
    # Envoy joins the values of some repeated headers by commas, which none of those that are read here has inside.
    return [value.strip() for line in headers.get(name, ()) for value in line.split(",") if value.strip()]


def _bearer(authorization: str, taken: Credentials) -> Secret:
    scheme, _, text = authorization.partition(" ")
    text = text.strip()
    if scheme.lower() != "bearer" or not text:
        raise ApiError("unauthorized", "Authorization has no API key; send it as Authorization: Bearer …")
    return _key(text, taken)


def _key(text: str, taken: Credentials) -> Secret:
    secret = Secret(text)
    kinds = [Kind(name) for name in taken.keys]
    if not secret.is_of(*kinds):
        starts = " or ".join(kind.prefix for kind in kinds)
        raise ApiError("unauthorized", f"This is no API key of this service: they start with {starts}")
    if not secret.is_whole:
        raise ApiError("unauthorized", "API key checksum does not match; check that the whole key was copied")
    return secret


def _session(value: str) -> Secret:
    secret = Secret(value)
    if not secret.is_of(Kind.SESSION) or not secret.is_whole:
        raise ApiError("unauthorized", "The session's cookie is damaged; log in again")
    return secret


def _session_cookies(headers: Headers) -> list[str]:
    """The values of the session's cookie: there may be several lines of cookies, and several cookies of one name."""
    pairs = (pair.partition("=") for line in headers.get("cookie", ()) for pair in line.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == SESSION_COOKIE]


def _refuse_other_sites(headers: Headers, host: str) -> None:
    """Browsers send a cookie whoever made them ask, and say who did; other clients say nothing and have no cookie jar.

    Source: Fetch Metadata, where ``none`` is a person's own doing, and the rule of Go's ``http.CrossOriginProtection``;
    but reading is refused to other sites as well.
    """
    sites = _values(headers, "sec-fetch-site")
    origins = _values(headers, "origin")
    own = all(site in _SAME_SITE for site in sites) if sites else all(_is_host(origin, host) for origin in origins)
    if not own:
        raise ApiError("forbidden", "A session's cookie is taken from pages of this site only.")


def _is_host(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    port = _DEFAULT_PORTS.get(parts.scheme)
    return port is not None and parts.netloc.lower().removesuffix(port) == host.lower().removesuffix(port)
