"""Settings of what a node tells about its requests, beside the metrics."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sidecar.config.section import Section

_Url = Annotated[str, Field(pattern=r"^https?://[^\s/@?#]+(/[^\s?#]*)?$")]


class OtlpConfig(Section):
    """Where traces go."""

    endpoint: _Url | None = Field(
        default=None,
        description="URL to which traces are sent by OTLP over HTTP, as `http://127.0.0.1:4318/v1/traces`; without it"
        " nothing is traced. See [traces.md](traces.md)",
    )
    share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0,
        description="share of the requests to trace of those that belong to no trace; what belongs to one is traced or"
        " not as its parent is",
    )
    content: bool = Field(
        default=False,
        description="add to the traces what requests and answers say: everybody who sees the traces can then read that",
    )
    envoy: bool = Field(
        default=False,
        description="whether Envoy, by the configuration that is rendered for it, sends its own spans there too; the"
        " `endpoint` must then be plain http. Envoy's authors call its tracer unfinished",
    )

    @model_validator(mode="after")
    def _envoy_reaches_it(self) -> Self:
        if self.envoy and not (self.endpoint or "").startswith("http://"):
            raise ValueError("envoy sends its spans to an endpoint of plain http alone")
        return self


class TelemetryConfig(Section):
    """All of it."""

    otlp: OtlpConfig = OtlpConfig()
