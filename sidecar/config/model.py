"""Settings of one served model, whoever serves it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sidecar.config.admission import PriceConfig
from sidecar.config.section import Section

ModelName = Annotated[str, Field(min_length=1, max_length=128)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Slug = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._:-]{0,126}$")]


class RequestLimits(Section):
    """What a model accepts in one request."""

    max_request_bytes: Count = Field(default=10 * 1024 * 1024, description="bytes of a request's body")
    max_items: Count = Field(default=4096, description="items in `input`")
    max_tools: Count = Field(default=128, description="tools")
    max_images: Annotated[int, Field(ge=0)] = Field(default=32, description="images")


class ReasoningPreset(Section):
    """What a preset says of ``reasoning``."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class Preset(Section):
    """Parameters of a request, by their names there, that take effect where it leaves them out."""

    instructions: str | None = None
    max_output_tokens: Count | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningPreset | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None


class TeamAlias(Section):
    """A team's own name for a model; without ``team``, the id of an organization, it is everybody's."""

    name: _Slug
    team: ModelName | None = None
    preset: Preset = Preset()


class CatalogEntry(Section):
    """What the model is called on the bureau surface."""

    slug: _Slug
    vendor_name: ModelName | None = None
    aliases: tuple[TeamAlias, ...] = ()


class AnyModelConfig(Section):
    """What all served models have."""

    name: ModelName = Field(description="what clients ask for")
    aliases: tuple[ModelName, ...] = Field(
        default=(), description="further names for the model; the response names the one that was asked for"
    )
    context_length: Annotated[int, Field(ge=2, le=2**31 - 1)] = Field(
        description="tokens of prompt and answer together"
    )
    limits: RequestLimits = RequestLimits()
    first_token_timeout: Seconds = Field(
        default=120.0, description="seconds without a first token after which a request gets 503"
    )
    token_timeout: Seconds = Field(
        default=60.0, description="seconds without a further token after which an answer fails"
    )
    prices: tuple[PriceConfig, ...] = Field(default=(), description="what its tokens cost; by default nothing")
    catalog: CatalogEntry | None = Field(
        default=None,
        description="its entry in the bureau surface's catalog, without which that does not serve it: `slug`"
        " (`vendor/name`), `vendor_name` if that is not the slug's second part, and `aliases` of teams; see"
        " [bureau.md](bureau.md)",
    )

    @model_validator(mode="after")
    def _one_price_a_day(self) -> AnyModelConfig:
        days = [price.since for price in self.prices]
        twice = next((day for day in days if days.count(day) > 1), None)
        if twice is not None:
            raise ValueError(f"two of the prices hold from {twice} on")
        return self
