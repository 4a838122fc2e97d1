"""Who may hold an idempotency key: one request at a time, until it is answered, lets go, or its worker is dead."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, auto

from sidecar.stored.owner import Owner

MOST_EARLIER = 64
"""So many earlier attempts are remembered whose cost is given back."""

NOBODY = ""
"""The worker of a key that nobody holds."""


@dataclass(frozen=True, slots=True)
class Use:
    """An idempotency ``key`` as a request has it: by whom and where it is used, and what for.

    ``credential`` is the id of the API key, ``path`` as it was sent. ``attempt`` is the id of the request.
    """

    owner: Owner
    credential: str
    key: str
    method: str
    path: str
    body: bytes
    attempt: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A request that wants a key.

    ``id`` and ``request`` are digests by the team's data key ``key_id``: of the key and of whose it is, and of what is
    asked. ``attempt`` is the id of the request, that of its reservation and, with ``resp_``, of its response.
    """

    id: str
    owner: Owner
    key_id: str
    request: str
    attempt: str


@dataclass(frozen=True, slots=True)
class Held:
    """The request holds the key. ``earlier`` are the attempts whose cost is given back once this one is answered."""

    earlier: tuple[str, ...] = ()


class Refused(Enum):
    """Why a request does not hold a key."""

    RUNNING = auto()
    """Another one holds it, and asks for the same."""
    MISMATCH = auto()
    """It stands for something else."""
    ANSWERED = auto()
    """It stands for this, which has been answered."""
    KEY_GONE = auto()
    """The team's data key is another by now."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the store has it.

    ``attempt`` holds it, or was the last to. ``worker`` is the life of the process that it is in, :data:`NOBODY` where
    it has let go. ``answered`` tells that the key stands for an answer, ``ended`` that its time is over.
    """

    request: str
    attempt: str
    worker: str
    earlier: tuple[str, ...]
    answered: bool
    ended: bool

    def judge(self, claim: Claim, alive: Collection[str]) -> Held | Refused:
        """What comes of ``claim``; ``alive`` are workers that live, this key's among them if it does."""
        if self.is_of(claim.attempt):
            return Held(self.earlier)
        same = self.request == claim.request
        if self.answered and not self.ended:
            return Refused.ANSWERED if same else Refused.MISMATCH
        if self.worker in alive and not self.ended:
            return Refused.RUNNING if same else Refused.MISMATCH
        if self.answered or not same or (self.ended and self.worker == NOBODY):
            return Held()
        return Held(self._with_attempt() if self.worker != NOBODY else self.earlier)

    def is_of(self, attempt: str) -> bool:
        """Whether it is held by ``attempt``."""
        return self.attempt == attempt and self.worker != NOBODY and not self.answered

    def taken_by(self, claim: Claim, held: Held, worker: str) -> Key:
        """The key after ``claim``, in the process ``worker``, has come to hold it."""
        return Key(claim.request, claim.attempt, worker, held.earlier, answered=False, ended=False)

    def let_go(self, *, given_back: bool) -> Key:
        """The key after its attempt, whose cost may be given back, has let go of it."""
        return replace(self, worker=NOBODY, earlier=self._with_attempt() if given_back else self.earlier)

    def _with_attempt(self) -> tuple[str, ...]:
        return (*self.earlier, self.attempt)[-MOST_EARLIER:]
