"""Settings of admission: what organizations may have, and what tokens cost."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sidecar.config.section import Section

# A bucket holds a million times its limit, and a store's numbers have 63 bits.
_Limit = Annotated[int, Field(ge=0, le=10**12)] | None
# Text, as YAML would make a binary fraction of a number.
_Price = Annotated[str, Field(pattern=r"^[0-9]{1,6}(\.[0-9]{1,12})?$")]


class LimitDefaults(Section):
    """What an organization may have where neither it nor the model has a limit of its own."""

    requests_per_minute: _Limit = Field(default=None, description="requests per minute, for each model")
    tokens_per_minute: _Limit = Field(
        default=None,
        description="tokens per minute, for each model: those of the prompt and `max_output_tokens`, or 512 where a"
        " request has none (4,096 on the bureau surface), until the real ones are known",
    )
    image_bytes_per_minute: _Limit = Field(
        default=None, description="bytes of images fetched per minute, for each model"
    )
    concurrent_requests: _Limit = Field(default=None, description="requests at a time, on all models together")
    period: Literal["day", "month"] | None = Field(
        default=None, description="the period of `period_tokens`, `day` or `month` of UTC"
    )
    period_tokens: _Limit = Field(default=None, description="tokens per period, on all models together")

    @model_validator(mode="after")
    def _quota_is_whole(self) -> LimitDefaults:
        if (self.period is None) != (self.period_tokens is None):
            raise ValueError("period and period_tokens are needed together")
        return self


class AdmissionConfig(Section):
    """What is admitted."""

    defaults: LimitDefaults = LimitDefaults()
    queue_seconds: Annotated[float, Field(ge=0, le=120)] = Field(
        default=0.0,
        description="seconds that a request above a limit may wait to be admitted rather than be refused at once; 0:"
        " none waits",
    )
    lease_seconds: Annotated[int, Field(ge=0, le=30)] = Field(
        default=0,
        description="seconds for which a worker takes a slice of a limit ahead of its requests, so that many nodes can"
        " serve one organization without waiting for each other (docs/scale.md); 0: never",
    )


class PriceConfig(Section):
    """What a million tokens cost from a date on."""

    # The key is a word of Python's.
    since: date = Field(alias="from", description="the first day (UTC) on which the prices hold")
    input: _Price = Field(description='price of a million tokens of prompts, in quotes: `"0.15"`')
    cached_input: _Price | None = Field(
        default=None, description="the same for those that the runtime had cached; by default as `input`"
    )
    output: _Price = Field(description="the same for tokens of answers")
    per_search: _Price | None = Field(
        default=None, description="price of one web search that an upstream makes; by default nothing"
    )
