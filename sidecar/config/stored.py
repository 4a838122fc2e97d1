"""Settings of stored responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from sidecar.config.section import Section


class StoredConfig(Section):
    """What responses are sealed with that clients have stored: [stored.md](stored.md)."""

    master_key: Path | None = Field(
        default=None,
        description="a file of 32 random bytes in base64 (`openssl rand -base64 32`), the same on all nodes of a store."
        " With several lines, the first key wraps the teams' data keys, and all of them open what they have wrapped",
    )
    master_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None, description="the environment variable that holds the same, in place of the file"
    )

    @model_validator(mode="after")
    def _is_one(self) -> StoredConfig:
        if self.master_key is not None and self.master_key_env is not None:
            raise ValueError("either master_key or master_key_env is needed, not both")
        return self
