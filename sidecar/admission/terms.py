"""What organizations have agreed on, as the store has it: their limits, and whether they pay beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from sidecar.admission.balances import Limit, limits_of
from sidecar.admission.limits import ANY, Limits, applied
from sidecar.admission.periods import DAY
from sidecar.admission.statements import FIND_LIMITS, FIND_PREPAID

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Terms:
    """Those of one organization; ``rows`` are the limits of its own and of all organizations, by both names.

    ``by_model`` remembers what follows from them, with the day for which it does: periods end with days.
    """

    rows: Mapping[tuple[str, str], Limits]
    prepaid: bool
    read_at: float
    by_model: dict[str, tuple[int, tuple[Limit, ...]]] = field(default_factory=dict)


class TermsReader:
    """Reads terms and remembers them for ``seconds``, which is how long a change takes to hold everywhere."""

    def __init__(self, defaults: Limits, *, seconds: float = 3.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._defaults = defaults
        self._seconds = seconds
        self._clock = clock
        self._known: dict[str, Terms] = {}

    def load(self, connection: Connection, organizations: Iterable[str]) -> None:
        """Have the terms of all ``organizations`` ready, none of them older than is allowed."""
        now = self._clock()
        wanted = {
            name for name in organizations if name not in self._known or now - self._known[name].read_at > self._seconds
        }
        if not wanted:
            return
        if len(self._known) + len(wanted) > _MOST_REMEMBERED:
            self._known = {name: terms for name, terms in self._known.items() if now - terms.read_at <= self._seconds}
        asked = [{"organization_id": name} for name in sorted(wanted)]
        rows = {
            (row.organization_id, row.model): Limits(
                row.requests_per_minute,
                row.tokens_per_minute,
                row.image_bytes_per_minute,
                row.concurrent_requests,
                row.period,
                row.period_tokens,
            )
            for row in FIND_LIMITS.run(connection, [*asked, {"organization_id": ANY}])
        }
        prepaid = {row.id for row in FIND_PREPAID.run(connection, asked)}
        for name in wanted:
            own = {key: limits for key, limits in rows.items() if key[0] in (name, ANY)}
            self._known[name] = Terms(own, name in prepaid, now)

    def limits(self, organization: str, model: str, now: int) -> tuple[Limit, ...]:
        """The limits that hold for ``organization``, which has been loaded, on ``model`` at ``now`` (microseconds)."""
        terms, day = self._known[organization], now // DAY
        known = terms.by_model.get(model)
        if known is None or known[0] != day:
            found = applied(terms.rows, self._defaults, organization, model)
            known = terms.by_model[model] = (day, tuple(limits_of(organization, model, found, now)))
        return known[1]

    def prepaid(self, organization: str) -> bool:
        """Whether ``organization``, which has been loaded, pays beforehand."""
        return self._known[organization].prepaid
