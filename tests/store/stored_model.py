"""What is promised of stored responses, by itself: what each event comes to, and who may see what after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sidecar.responses.level import Level
from sidecar.stored.chain import NotStored, StillMade
from sidecar.stored.keep import GRACE, LONGEST, MINUTE, Kept
from sidecar.stored.owner import Owner
from sidecar.stored.record import DAY, KEPT, Record

OWNERS = [Owner("org_a", "p", "e"), Owner("org_a", "p", "f"), Owner("org_a", "q", "e"), Owner("org_b", "p", "e")]
LEVELS = [Level("org_a"), Level("org_a", "p"), Level("org_a", "p", "f"), Level("org_b")]
ORGANIZATIONS = ["org_a", "org_b"]
# Of no sum of these anything expires to the minute: the clock goes on while the test runs.
PAUSES = [7 * MINUTE, LONGEST + 4 * MINUTE, 11 * DAY + MINUTE, 16 * DAY + MINUTE, KEPT + 4 * MINUTE]

View = type[NotStored] | type[StillMade] | tuple[list[str], bool]
"""What an owner gets of a conversation: what was said in its turns, and whether it goes back to its begin."""


@dataclass
class Known:
    """A response: when it expires, in microseconds on the model's clock, 0 where it was ended; what is left of it."""

    record: Record
    expires_at: int = 0
    stored: bool = False
    row: bool = False

    @property
    def owner(self) -> Owner:
        return self.record.place.owner


class Model:
    """Events happen one after another, and time passes when it is told to."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}
        self.forbidden = set[Level]()
        self.now = 0

    def copy(self) -> Model:
        other = Model()
        other.known = {id: replace(known) for id, known in self.known.items()}
        other.forbidden, other.now = set(self.forbidden), self.now
        return other

    def announce(self, record: Record) -> bool:
        """Whether it may be stored."""
        allowed = not self._refused(record.place.owner)
        self.known[record.place.response_id] = Known(record, self.now + LONGEST, row=allowed)
        return allowed

    def keep(self, record: Record) -> Kept:
        known = self.known.setdefault(record.place.response_id, Known(record))
        ended = known.row and self._has_ended(known)
        if self._refused(known.owner):
            return Kept.FORBIDDEN
        if known.row and known.stored and not ended:
            return Kept.STORED
        if ended or (record.announced and not known.row):
            return Kept.DELETED
        known.row = known.stored = True
        for one in self._rows_back_from(known):
            if one is known or not self._has_ended(one):
                one.expires_at = max(one.expires_at, self.now + KEPT)
        return Kept.STORED

    def delete(self, id: str, owner: Owner) -> bool:
        """Whether it was there for ``owner``."""
        known = self.known[id]
        removed = owner == known.owner and self._visible(known)
        known.row = known.row and not removed
        return removed

    def withdraw(self, id: str) -> None:
        known = self.known[id]
        known.row = known.row and known.stored

    def require(self, level: Level) -> int:
        """How many responses have gone."""
        self.forbidden.add(level)
        return self.end(level)

    def no_longer_require(self, level: Level) -> bool:
        """Whether it was required."""
        required = level in self.forbidden
        self.forbidden.discard(level)
        return required

    def end(self, level: Level) -> int:
        """How many responses have gone."""
        covered = [one for one in self.known.values() if one.row and one.expires_at and level.covers(one.owner)]
        for known in covered:
            known.expires_at = 0
        return len(covered)

    def let_pass(self, elapsed: int) -> None:
        self.now += elapsed

    def forget(self) -> None:
        """What has expired goes."""
        for known in self.known.values():
            known.row = known.row and not self._has_ended(known)

    def view(self, id: str, owner: Owner) -> View:
        known = self.known[id]
        if owner != known.owner or not self._visible(known):
            return NotStored
        if not known.stored:
            return StillMade
        told = list[Known]()
        for one in self._rows_back_from(known):
            if not (self._visible(one) and one.stored):
                break
            told.insert(0, one)
        return [said(one.record) for one in told], told[0].record.place.previous_id is None

    def _refused(self, owner: Owner) -> bool:
        return any(level.covers(owner) for level in self.forbidden)

    def _visible(self, known: Known) -> bool:
        return known.row and known.expires_at > self.now

    def _has_ended(self, known: Known) -> bool:
        return known.expires_at <= max(0, self.now - GRACE)

    def _rows_back_from(self, known: Known | None) -> Iterator[Known]:
        while known is not None and known.row:
            yield known
            known = self.known.get(known.record.place.previous_id or "")


def said(record: Record) -> str:
    """What the user says in a turn."""
    return f"turn {record.place.response_id.removeprefix('resp_')}"
