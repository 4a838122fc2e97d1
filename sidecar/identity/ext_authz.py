"""The service that Envoy asks before it lets a request in: ``envoy.service.auth.v3.Authorization`` (Envoy 1.40).

The route says by ``context_extensions`` which surface a request is for, and whether to trust what stands in front of
it (:mod:`sidecar.identity.trusted`); a client cannot.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from envoy.config.core.v3.base_pb2 import HeaderValue, HeaderValueOption
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse
from envoy.type.v3.http_status_pb2 import HttpStatus

from sidecar.identity.authenticator import Authenticator
from sidecar.identity.identity import Identity
from sidecar.identity.presented import Headers, presented
from sidecar.identity.trusted import Trusted, claims_of, is_marked
from sidecar.responses.caller import CALLER_HEADERS
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.surfaces.credentials import Credentials
from sidecar.surfaces.surface import Surface

CHECK = "/envoy.service.auth.v3.Authorization/Check"
"""The service's one method."""

SURFACE_EXTENSION = "surface"
"""The context extension that names the surface of a route."""

_PERMISSION_DENIED = 7

_log = logging.getLogger(__name__)


class AuthorizationService:
    """Lets requests in whose credentials allow them, and says on whose behalf they are."""

    def __init__(self, surfaces: Mapping[str, Surface], authenticator: Authenticator, trusted: Trusted | None) -> None:
        """``trusted`` reads the identities that an operator's own authentication finds out, if there is one."""
        self._surfaces = surfaces
        self._authenticator = authenticator
        self._trusted = trusted
        self._warned = False

    async def Check(self, request: CheckRequest, _context: object = None) -> CheckResponse:
        """Whether one request may go on.

        Raises:
            KeyError: the route names no known surface.
        """
        attributes = request.attributes
        surface = self._surfaces[attributes.context_extensions[SURFACE_EXTENSION]]
        headers = _headers_of(request)
        try:
            identity = await self._identity(request, headers, surface.credentials)
            http = attributes.request.http
            if (scope := _scope_of(surface, http.method, http.path)) is not None:
                identity.require(scope)
        except ApiError as error:
            return denied(surface.error_reply(error, "".join(headers.get("x-request-id", ()))))
        told = identity.caller.headers()
        hidden = (*surface.credentials.headers, *(self._trusted.headers if self._trusted else ()))
        return allowed(told, (*hidden, *(name for name in CALLER_HEADERS if name not in told)))

    async def answer(self, message: bytes) -> bytes:
        """The same for serialized messages.

        Raises:
            KeyError: as :meth:`Check`.
            google.protobuf.message.DecodeError: ``message`` is no ``CheckRequest``.
        """
        response: bytes = (await self.Check(CheckRequest.FromString(message))).SerializeToString()
        return response

    async def _identity(self, request: CheckRequest, headers: Headers, taken: Credentials) -> Identity:
        if not is_marked(request.attributes.context_extensions):
            host = request.attributes.request.http.host
            return await self._authenticator.identify(presented(headers, host, taken))
        if self._trusted is None:
            self._warn()
            raise ApiError("forbidden", "This node takes no identity from what stands in front of it.")
        return self._trusted.identity(headers, claims_of(request.attributes.metadata_context.filter_metadata))

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            _log.error("a route is marked as trusted, but identity.trusted is not configured: its requests are refused")


def _headers_of(request: CheckRequest) -> Headers:
    headers: dict[str, list[str]] = {}
    for header in request.attributes.request.http.header_map.headers:
        headers.setdefault(header.key, []).append(header.raw_value.decode("latin-1"))
    return headers


def _scope_of(surface: Surface, method: str, path: str) -> str | None:
    """What a request needs; nothing where there is nothing at its path, which it is told further on."""
    try:
        return surface.target({":method": method, ":path": path}).scope
    except ApiError:
        return None


def allowed(headers: Mapping[str, str], remove: Iterable[str]) -> CheckResponse:
    """The request goes on, with ``headers`` in the place of any that it had of these names."""
    return CheckResponse(ok_response=OkHttpResponse(headers=_options(headers), headers_to_remove=list(remove)))


def denied(reply: Reply) -> CheckResponse:
    """The request is answered with ``reply``."""
    response = CheckResponse(
        denied_response=DeniedHttpResponse(
            status=HttpStatus(code=reply.status), headers=_options(reply.headers), body=reply.body.decode()
        )
    )
    response.status.code = _PERMISSION_DENIED
    return response


def _options(headers: Mapping[str, str]) -> list[HeaderValueOption]:
    return [
        HeaderValueOption(
            header=HeaderValue(key=name, value=value), append_action=HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
        )
        for name, value in headers.items()
    ]
