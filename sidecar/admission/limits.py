"""What organizations may have: limits per organization and model, most of which are inherited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from sidecar.admission.periods import Period

ANY = "*"
"""Stands for all organizations, or for all models."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one scope; ``None`` is not limited here. A quota is ``period_tokens`` in each ``period``."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    image_bytes_per_minute: int | None = None
    concurrent_requests: int | None = None
    period: Period | None = None
    period_tokens: int | None = None

    def over(self, below: Limits) -> Limits:
        """These, and what ``below`` says where these are silent. A quota's period and tokens are one limit."""

        def first(ours: int | None, theirs: int | None) -> int | None:
            return theirs if ours is None else ours

        quota = below if self.period is None or self.period_tokens is None else self
        return Limits(
            first(self.requests_per_minute, below.requests_per_minute),
            first(self.tokens_per_minute, below.tokens_per_minute),
            first(self.image_bytes_per_minute, below.image_bytes_per_minute),
            first(self.concurrent_requests, below.concurrent_requests),
            quota.period,
            quota.period_tokens,
        )


NONE = Limits()

LimitRows = Mapping[tuple[str, str], Limits]
"""Limits by organization and model, either of which may be :data:`ANY`."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What holds for one organization on one model.

    Rates count each model by itself. Requests under way and quotas count ``on_all`` models together, as far as the
    limit is one for all models, and ``on_model`` where a limit names the model; both hold.
    """

    rates: Limits
    on_all: Limits
    on_model: Limits


def applied(rows: LimitRows, defaults: Limits, organization: str, model: str) -> Applied:
    """The limits of ``organization`` on ``model``: the more particular row decides, last the ``defaults``."""
    named = _merged(rows, [(organization, model), (ANY, model)])
    general = _merged(rows, [(organization, ANY), (ANY, ANY)]).over(defaults)
    # A limit of the organization comes before one of the model for all organizations.
    order = [(organization, model), (organization, ANY), (ANY, model), (ANY, ANY)]
    return Applied(_merged(rows, order).over(defaults), general, named)


def _merged(rows: LimitRows, order: Iterable[tuple[str, str]]) -> Limits:
    return reduce(lambda above, key: above.over(rows.get(key, NONE)), order, NONE)
