"""Settings of who a request is from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from sidecar.config.section import Section

_HeaderName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")]
_ClaimName = Annotated[str, Field(min_length=1, max_length=128)]


class TrustedSource(Section):
    """Where Envoy has put one fact about a client: either a request header or a claim."""

    header: _HeaderName | None = Field(default=None, description="a request header, in lower case")
    claim: _ClaimName | None = Field(default=None, description="a claim of a token that Envoy has verified")

    @model_validator(mode="after")
    def _is_one(self) -> TrustedSource:
        if (self.header is None) == (self.claim is None):
            raise ValueError("either a header or a claim is needed")
        return self


class TrustedIdentity(Section):
    """Identity that an operator's own authentication has found out."""

    organization: TrustedSource
    key: TrustedSource | None = None
    user: TrustedSource | None = None
    scopes: TrustedSource | None = None


class IdentityConfig(Section):
    """How clients are known."""

    cache_seconds: Annotated[float, Field(gt=0, le=4)] = Field(
        default=3.0,
        description="seconds for which a worker remembers a credential; a revoked one counts as long",
    )
    negative_cache_seconds: Annotated[float, Field(gt=0, le=4)] = Field(
        default=1.0, description="seconds for which a worker remembers that a credential is unknown"
    )
    trusted: TrustedIdentity | None = Field(
        default=None,
        description="where authentication of your own leaves `organization` and, if they are told, `key`, `user` and"
        " `scopes`: each a `header` or a `claim`; see [identity.md](identity.md)",
    )
