"""Whatever is tried, answered, let go, repeated, forgotten, deleted or shredded, and whoever dies: a request that was
answered is answered so again, one is at it at a time, and of all tries one is paid for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from sidecar.admission.beats import ForgetWorkers
from sidecar.responses.level import Level
from sidecar.store.engine import open_engine
from sidecar.stored.claim_rows import REMEMBERED, KeepAnswers, LetGo, LetKeysGo, SealedAnswer, TakeKeys, sealed_answer
from sidecar.stored.claims import Claim, Held, Refused
from sidecar.stored.keep import LONGEST, MINUTE
from sidecar.stored.keys import AddKey, NewKey
from sidecar.stored.owner import Owner
from sidecar.stored.removal import remove_some
from sidecar.stored.zero_retention import no_longer_require, require

OWNERS = {"key a": Owner("org_a", "p", "e"), "key b": Owner("org_a", "q", "e")}
TABLES = ("idempotency_answers", "idempotency_keys", "stored_keys", "zero_retention", "workers")
PAUSES = [7 * MINUTE, LONGEST + MINUTE, REMEMBERED // 2 + MINUTE, REMEMBERED + MINUTE]
DATA_KEY = NewKey("dk", "org_a", b"", "")

ids = st.sampled_from(sorted(OWNERS))
requests = st.sampled_from(["asked", "asked otherwise"])
lives = st.sampled_from(["w1", "w2"])


@dataclass
class Known:
    """What the test knows of a key."""

    request: str = ""
    holder: str | None = None
    worker: str = ""
    answer: bytes | None = None
    answered: bool = False
    earlier: list[str] = field(default_factory=list)
    expires_at: int = 0


class IdempotencyStates(RuleBasedStateMachine):
    """Time is the test's own: to let it pass, all that is kept is made older."""

    claims = Bundle("claims")
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.engine = open_engine(self.url, "write", 5.0)
        self.known = {id_: Known() for id_ in OWNERS}
        self.alive = set[str]()
        self.forbidden = False
        self.now = 0
        self.attempts = 0

    @initialize()
    def begin(self) -> None:
        with self.engine.begin() as connection:
            for table in TABLES:
                connection.execute(text(f"DELETE FROM {table}"))
            AddKey().perform(connection, [DATA_KEY])

    @rule(target=claims, id_=ids, request=requests, worker=lives)
    def try_it(self, id_: str, request: str, worker: str) -> Any:
        self.attempts += 1
        claim = Claim(id_, OWNERS[id_], "dk", request, f"a{self.attempts}")
        known = self.known[id_]
        # A worker that claims a key is no dead one, and at what it was at before.
        self.alive.add(worker)
        expected = self.expected(known, request)
        outcome = self.claim(claim, worker)
        assert outcome == expected
        if not isinstance(outcome, Held):
            return multiple()
        known.request, known.holder, known.worker = request, claim.attempt, worker
        known.earlier, known.answered, known.answer = list(outcome.earlier), False, None
        known.expires_at = self.now + LONGEST
        # Whoever asks a moment later finds it held.
        later = Claim(id_, OWNERS[id_], "dk", request, "later")
        assert self.claim(later, "w2" if worker == "w1" else "w1") is Refused.RUNNING
        return claim

    def claim(self, claim: Claim, worker: str) -> Held | Refused:
        with self.engine.begin() as connection:
            (outcome,) = TakeKeys(worker, "n1").perform(connection, [claim])
        self.alive.add(worker)
        return outcome

    def expected(self, known: Known, request: str) -> Held | Refused:
        same = known.request == request
        ended = known.expires_at <= self.now
        if known.answered and not ended:
            return Refused.ANSWERED if same else Refused.MISMATCH
        if known.holder and known.worker in self.alive and not ended:
            return Refused.RUNNING if same else Refused.MISMATCH
        if known.answered or not same or (ended and not known.holder):
            return Held()
        return Held((*known.earlier, known.holder) if known.holder else tuple(known.earlier))

    def holds(self, claim: Claim) -> Known | None:
        known = self.known[claim.id]
        return known if known.holder == claim.attempt and not known.answered else None

    @rule(claim=claims)
    def answer(self, claim: Claim) -> None:
        answer = claim.attempt.encode()
        with self.engine.begin() as connection:
            KeepAnswers().perform(connection, [SealedAnswer(claim.id, claim.owner, claim.attempt, "dk", answer)])
        if (known := self.holds(claim)) is not None:
            known.answered, known.expires_at = True, self.now + REMEMBERED
            known.answer = None if self.forbidden and claim.id == "key a" else answer

    @rule(claim=claims, given_back=st.booleans())
    def let_go(self, claim: Claim, given_back: bool) -> None:
        with self.engine.begin() as connection:
            LetKeysGo().perform(connection, [LetGo(claim.id, claim.attempt, given_back)])
        if (known := self.holds(claim)) is not None:
            known.earlier += [claim.attempt] if given_back else []
            known.holder, known.expires_at = None, self.now + REMEMBERED
            if not known.earlier:
                self.known[claim.id] = Known()

    @rule(worker=lives)
    def die(self, worker: str) -> None:
        with self.engine.begin() as connection:
            ForgetWorkers().perform(connection, [worker])
        self.alive.discard(worker)

    @rule(claim=claims)
    def die_before_the_commit(self, claim: Claim) -> None:
        with self.engine.connect() as connection:
            KeepAnswers().perform(connection, [SealedAnswer(claim.id, claim.owner, claim.attempt, "dk", b"lost")])
            connection.rollback()

    @rule(elapsed=st.sampled_from(PAUSES))
    def let_time_pass(self, elapsed: int) -> None:
        with self.engine.begin() as connection:
            older = text("UPDATE idempotency_keys SET expires_at = expires_at - :t WHERE expires_at > 0")
            connection.execute(older, {"t": elapsed})
        self.now += elapsed

    @rule()
    def forget_what_has_expired(self) -> None:
        with self.engine.begin() as connection:
            assert not remove_some(connection)
        for id_, known in self.known.items():
            if known.expires_at <= self.now:
                self.known[id_] = Known()

    @rule()
    def require_zero_retention(self) -> None:
        level = Level("org_a", "p")
        with self.engine.begin() as connection:
            require(connection, level)
        self.forbidden = True
        if self.known["key a"].answered:
            self.known["key a"].expires_at = 0

    @rule()
    def no_longer_require_it(self) -> None:
        with self.engine.begin() as connection:
            assert no_longer_require(connection, Level("org_a", "p")) is self.forbidden
        self.forbidden = False

    @invariant()
    def what_is_kept_is_what_was_answered(self) -> None:
        with self.engine.connect() as connection:
            for id_, known in self.known.items():
                if known.expires_at > self.now:
                    kept = sealed_answer(connection, id_)
                    assert (kept and kept[1]) == known.answer

    def teardown(self) -> None:
        self.engine.dispose()


def test_no_order_of_events_breaks_a_promise(store_url: str) -> None:
    class OnThisStore(IdempotencyStates):
        url = store_url

    run_state_machine_as_test(OnThisStore, settings=settings(max_examples=20, stateful_step_count=25, deadline=None))
