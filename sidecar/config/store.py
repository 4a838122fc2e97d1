"""Settings of the store: credentials, limits and the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sidecar.config.section import Section

STORE_URL = r"^(sqlite:///|postgresql://).+$"
SQLITE = "sqlite:///"


class StoreConfig(Section):
    """Where the node keeps what must outlive it."""

    state: Path = Field(
        default=Path("state"),
        description="a directory of this node alone, on a disk: what its workers need to settle after a crash, and the"
        " default store",
    )
    url: Annotated[str, Field(pattern=STORE_URL)] | None = Field(
        default=None,
        description="`sqlite:///FILE` for one node, `postgresql://USER@HOST/DATABASE` for any number; by default the"
        " file `ledger.db` in `store.state`",
    )
    url_file: Path | None = Field(
        default=None, description="a file that holds the URL: for one with a password, which others must not read"
    )
    when_down: Literal["refuse", "spool"] = Field(
        default="refuse",
        description="what becomes of requests while the store does not answer: `refuse` them, or take those of clients"
        " that were known in the last ten minutes and `spool` what they used to `store.state`, to be settled later",
    )
    retention_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        default=None,
        description="days for which usage records are kept, with the reservations they came from; by default for ever."
        " See [billing.md](billing.md#what-is-kept)",
    )

    @model_validator(mode="after")
    def _is_one(self) -> StoreConfig:
        if self.url is not None and self.url_file is not None:
            raise ValueError("either url or url_file is needed, not both")
        return self
