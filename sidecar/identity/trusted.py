"""Identity that an operator's own authentication has found out: claims that Envoy has verified, or headers.

They count only where Envoy's configuration of the route says so (:data:`MARK`), which no client can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.struct_pb2 import Struct, Value

from sidecar.config.identity import TrustedIdentity, TrustedSource
from sidecar.identity.identity import INFERENCE, SCOPES, Identity
from sidecar.identity.presented import Headers
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError

MARK = ("trusted", "true")
"""The context extension by which a route marks itself."""

CLAIMS_NAMESPACE = "envoy.filters.http.jwt_authn"
CLAIMS = "claims"
"""Where the claims stand: this filter's dynamic metadata, under its ``payload_in_metadata``."""

_ID = re.compile(r"[\x21-\x7e]{1,128}")


def is_marked(extensions: Mapping[str, str]) -> bool:
    """Whether the route of a request says that what stands in front of it has found out who it is from."""
    name, value = MARK
    return extensions.get(name) == value


@dataclass(frozen=True, slots=True)
class Trusted:
    """Reads identities where ``sources`` say they stand."""

    sources: TrustedIdentity

    @property
    def headers(self) -> list[str]:
        """The request headers that are read, which are for nobody behind."""
        sources = (self.sources.organization, self.sources.key, self.sources.user, self.sources.scopes)
        return [source.header for source in sources if source is not None and source.header is not None]

    def identity(self, headers: Headers, claims: Struct) -> Identity:
        """Who a request is from.

        Raises:
            ApiError: ``unauthorized``: it has no organization, a fact that stands twice, or one that is no id.
        """

        def read(name: str, source: TrustedSource | None) -> str:
            values = _values(source, headers, claims) if source else []
            if len(values) > 1 or any(not _ID.fullmatch(value) for value in values):
                raise ApiError("unauthorized", f"The {name} that authentication has found cannot be used.")
            return values[0] if values else ""

        caller = Caller(
            read("organization", self.sources.organization),
            read("key", self.sources.key),
            read("user", self.sources.user),
        )
        if not caller.organization:
            raise ApiError("unauthorized", "Authentication has found no organization.")
        return Identity(caller, self._scopes(headers, claims))

    def _scopes(self, headers: Headers, claims: Struct) -> frozenset[str]:
        """Those that are told and known here; without a source, all that inference needs."""
        if self.sources.scopes is None:
            return INFERENCE
        told = " ".join(_values(self.sources.scopes, headers, claims)).split()
        return frozenset(told) & SCOPES.keys()


def claims_of(metadata: Mapping[str, Struct]) -> Struct:
    """The verified claims in the dynamic metadata of a request's filters; none is an empty structure."""
    if CLAIMS_NAMESPACE not in metadata:
        return Struct()
    return metadata[CLAIMS_NAMESPACE].fields[CLAIMS].struct_value


def _values(source: TrustedSource, headers: Headers, claims: Struct) -> list[str]:
    if source.header is not None:
        return [value for value in headers.get(source.header, ()) if value]
    name = source.claim or ""
    return _texts(claims.fields[name]) if name in claims.fields else []


def _texts(value: Value) -> list[str]:
    """A claim as texts: a list's members, and a number as an issuer would write it."""
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [text for member in value.list_value.values for text in _texts(member)]
    if kind == "number_value":
        return [f"{value.number_value:.15g}"]
    return [value.string_value] if kind == "string_value" and value.string_value else []
