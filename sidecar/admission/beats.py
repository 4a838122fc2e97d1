"""What a store knows of live workers: a beat every few seconds, and with it how far their answers have come.

It serves for the loss of a whole machine, whose checkpoint files are lost with it: who sees a worker's beats stand
still for a minute settles what it left with the counts of its last beat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from sidecar.admission import statements
from sidecar.admission.entries import Settlement
from sidecar.admission.lessee import return_all
from sidecar.admission.statements import Statement
from sidecar.store import now_us

LOST_SECONDS = 60.0
"""For how long a worker's beats must have stood still."""

_WORKER = {"id": "text", "node": "text", "seen_at": "bigint"}
_BEAT = Statement(
    "INSERT INTO workers (id, node, seen_at, beats) SELECT id, node, seen_at, 1 FROM {rows} WHERE true ORDER BY id "
    "ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, beats = workers.beats + 1",
    _WORKER,
)
_COUNT = Statement(
    "UPDATE reservations AS t SET delivered_output = v.output, delivered_reasoning = v.reasoning, checkpoint_at = v.at "
    "FROM {rows} WHERE t.id = v.id AND t.settled_at IS NULL",
    {"id": "text", "output": "bigint", "reasoning": "bigint", "at": "bigint"},
)
_FORGET = Statement("DELETE FROM workers WHERE id IN (SELECT id FROM {rows})", {"id": "text"})
_OLDEST = text("SELECT id, beats FROM workers ORDER BY seen_at, id LIMIT 64")
_ADOPT = text(
    "INSERT INTO workers (id, node, seen_at, beats) SELECT worker, max(node), 0, 0 FROM "
    "(SELECT worker, node FROM reservations WHERE settled_at IS NULL UNION SELECT worker, '' FROM leases) AS taken "
    "WHERE NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = taken.worker) GROUP BY worker ON CONFLICT DO NOTHING"
)
_LEFT = text(
    "SELECT id, input_tokens, delivered_output, delivered_reasoning FROM reservations "
    "WHERE worker = :worker AND settled_at IS NULL ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Beat:
    """``worker`` lives. ``delivered`` is how far its answers have come: output and reasoning tokens by reservation."""

    worker: str
    node: str
    delivered: Mapping[str, tuple[int, int]]


class Beats:
    """The operation that notes beats."""

    def perform(self, connection: Connection, items: Sequence[Beat]) -> Sequence[None]:
        """Note all ``items`` with the same few statements."""
        now = now_us(connection)
        counts = [
            {"id": id, "output": output, "reasoning": reasoning, "at": now}
            for beat in items
            for id, (output, reasoning) in beat.delivered.items()
        ]
        # Settlements lock the same rows, in this order.
        ids = sorted(id for beat in items for id in beat.delivered)
        statements.LOCK_RESERVATIONS.run(connection, [{"id": id} for id in ids])
        _COUNT.run(connection, counts)
        _BEAT.run(connection, [{"id": beat.worker, "node": beat.node, "seen_at": now} for beat in items])
        return [None] * len(items)


class ForgetWorkers:
    """The operation that removes workers which have left nothing open, by their names; what they leased goes back."""

    def perform(self, connection: Connection, items: Sequence[str]) -> Sequence[None]:
        """Remove all ``items``."""
        return_all(connection, items)
        _FORGET.run(connection, [{"id": id} for id in sorted(set(items))])
        return [None] * len(items)


class AdoptWorkers:
    """The operation that makes known who died before the first beat: only what they have taken tells of them."""

    def perform(self, connection: Connection, items: Sequence[None]) -> Sequence[None]:
        """Make them known, as not heard of yet."""
        connection.execute(_ADOPT)
        return [None] * len(items)


def read_beats(connection: Connection) -> dict[str, int]:
    """The beats of those workers that have not been heard of for the longest time: the dead are among them.

    Of thousands of workers each looks at these few; when they are settled, the next come.
    """
    return {row.id: row.beats for row in connection.execute(_OLDEST)}


def read_left(connection: Connection, worker: str, outcome: str) -> list[Settlement]:
    """How the reservations end that ``worker`` has left open, by what its last beat told."""
    return [
        Settlement(
            row.id,
            outcome,
            begun=row.delivered_output > 0,
            input_tokens=row.input_tokens,
            output_tokens=row.delivered_output,
            reasoning_tokens=row.delivered_reasoning,
            generated_tokens=row.delivered_output,
            final=False,
        )
        for row in connection.execute(_LEFT, {"worker": worker})
    ]


class Watch:
    """Tells whose beats have stood still. One that looks again after a pause, or after a failure, begins anew: while a
    store does not answer, nobody's beats go on, and its recovery must not make the living look dead."""

    def __init__(self, longest_pause: float) -> None:
        """``longest_pause`` is how many seconds may lie between two looks."""
        self._longest_pause = longest_pause
        self._looked_at: float | None = None
        self._since: dict[str, tuple[int, float]] = {}

    def interrupted(self) -> None:
        """A look has failed."""
        self._looked_at = None

    def look(self, beats: Mapping[str, int], now: float) -> list[str]:
        """Those of ``beats`` that have stood still for :data:`LOST_SECONDS`; ``now`` is on a monotonic clock."""
        if self._looked_at is None or not 0 <= now - self._looked_at <= self._longest_pause:
            self._since = {}
        self._looked_at = now
        self._since = {
            worker: seen if (seen := self._since.get(worker)) and seen[0] == beat else (beat, now)
            for worker, beat in beats.items()
        }
        return sorted(worker for worker, (_, since) in self._since.items() if now - since >= LOST_SECONDS)
