"""A reservation as it is kept: what was asked for, and which balances it took from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from sidecar.admission.balances import Key, Kind, Limit
from sidecar.admission.entries import ReservationRequest
from sidecar.admission.limits import ANY


@dataclass(frozen=True, slots=True)
class Reservation:
    """One row. ``taken`` names the balances, in words of ``kind``, ``kind:*`` for all models, ``kind:*:period``."""

    id: str
    request_id: str
    organization_id: str
    credential_id: str | None
    model: str
    node: str
    worker: str
    created_at: int
    tokens: int
    input_tokens: int
    image_bytes: int
    hold: int
    taken: str
    end_user: str | None
    tags: str | None
    session: str | None
    stream: bool
    settled_at: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """The reservation in a row of the table."""
        return cls(**{name: row[name] for name in cls.__slots__})

    def balance_keys(self) -> Iterator[Key]:
        """The balances that it took from."""
        for word in self.taken.split():
            kind, _, rest = word.partition(":")
            scope, _, period = rest.partition(":")
            yield Key(self.organization_id, scope or self.model, cast("Kind", kind), period)


AS_ASKED = (
    *("id", "request_id", "organization_id", "credential_id", "model", "node", "worker", "tokens", "input_tokens"),
    *("stream", "end_user", "tags", "project", "environment", "endpoint", "told_model", "session", "client_request_id"),
)
"""The columns of a row that hold what the request itself says, under its names."""


def taken(limits: Iterable[Limit]) -> str:
    """The names of the balances that ``limits`` are kept in."""
    return " ".join(_word(limit.key) for limit in limits)


def _word(key: Key) -> str:
    scope = ANY if key.model == ANY else ""
    return f"{key.kind}:{scope}:{key.period}".rstrip(":")


def new_row(
    request: ReservationRequest, limits: Iterable[Limit], *, image_bytes: int, hold: int, now: int
) -> dict[str, object]:
    """The row of a request that has been admitted."""
    return {
        **{name: getattr(request, name) for name in AS_ASKED},
        "created_at": now,
        "image_bytes": image_bytes,
        "hold": hold,
        "taken": taken(limits),
        "settled_at": None,
    }


def void_row(id: str, now: int) -> dict[str, object]:
    """A row that keeps a reservation from being made: it was given up when nobody knew whether it had been."""
    nobody = ReservationRequest(id, "", "", "", "", "", 0, 0)
    return {**new_row(nobody, (), image_bytes=0, hold=0, now=now), "settled_at": now}
