"""Settings of directives: what teams let their own requests be, where no command has set something else."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sidecar.config.section import Section

_Count = Annotated[int, Field(ge=1, le=10**12)] | None
_Limit = Annotated[int, Field(ge=0, le=10**12)] | None
_Id = Annotated[str, Field(min_length=1, max_length=128)] | None
_Place = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None
_Vendor = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]


class DirectiveConfig(Section):
    """Directives of one level: [directives.md](directives.md)."""

    team: _Id = Field(
        default=None, description="the id of the organization that they are for; without it they are everybody's"
    )
    project: _Place = Field(default=None, description="the one project of the team")
    environment: _Place = Field(default=None, description="the one environment of the project")
    max_output_tokens: _Count = Field(default=None, description="what a request's `max_output_tokens` is lowered to")
    max_input_tokens: _Count = Field(default=None, description="the most tokens of a prompt, its whole conversation")
    no_training: bool | None = Field(
        default=None, description="whether requests go only to upstreams with `no_training`"
    )
    excluded_vendors: tuple[_Vendor, ...] | None = Field(
        default=None, description="vendors that get no request: of upstreams, and of the node's models by their slugs"
    )
    user_requests_per_minute: _Limit = Field(default=None, description="requests per minute of each end user")
    user_tokens_per_minute: _Limit = Field(default=None, description="tokens per minute of each end user")

    @model_validator(mode="after")
    def _level_is_one(self) -> Self:
        if self.environment is not None and self.project is None:
            raise ValueError("an environment is one of a project: project is needed")
        if self.project is not None and self.team is None:
            raise ValueError("a project is one of a team: team is needed")
        return self
