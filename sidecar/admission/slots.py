"""A slot: 256 bytes in which one reservation stands as long as it is not settled, readable when its process is dead.

A process that is killed leaves in a mapped file every store that it has made, up to some point of its program, and none
after that. So what a slot says is decided by its first 8 bytes, which are written last:

* ``FREE``: nothing, whatever else stands there.
* ``OPEN``: the reservation ``id``, of whose answer ``mark`` has been handed over.
* ``FINAL``: the settlement that its worker has made out, which may have reached the store or not.

Numbers that change while a slot is open are stored 8 bytes at a time, on addresses that are multiples of 8: a processor
stores them whole or not at all.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sidecar.admission.entries import Settlement
from sidecar.responses.marks import NOTHING, Cell, Counts

SLOT_BYTES = 256

FREE, OPEN, FINAL = 0, 1, 2

# Cells of 8 bytes, by their index.
_STATE, _MARK, _INPUT, _CACHED, _GUIDED, _SPOOLED = range(6)
_ID_AT, _ID_BYTES = 64, 32
# Whether it has begun, the seven counts, and two times; -1 where something is not known. Then the outcome, and the
# searches.
_END_AT, _END = 96, struct.Struct("<10q64sq")
_COUNTS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "guided_tokens", "generated_tokens")


class Slot:
    """A slot in use; ``mark`` is the cell that the transport writes to."""

    __slots__ = ("_bytes", "_cells", "id", "mark")

    def __init__(self, view: memoryview, id: str, input_tokens: int) -> None:
        """Take the free slot ``view`` for the reservation ``id``, of a prompt of ``input_tokens``.

        Raises:
            ValueError: ``id`` is not 1 to 32 ASCII characters.
        """
        name = id.encode("ascii")
        if not 0 < len(name) <= _ID_BYTES:
            raise ValueError("a reservation's id has 1 to 32 characters")
        self.id = id
        self._bytes = view
        self._cells = view.cast("Q")
        self.mark: Cell = self._cells[_MARK : _MARK + 1]
        for cell in (_MARK, _CACHED, _GUIDED, _SPOOLED):
            self._cells[cell] = NOTHING
        self._cells[_INPUT] = input_tokens
        view[_ID_AT : _ID_AT + _ID_BYTES] = name.ljust(_ID_BYTES, b"\0")
        self._cells[_STATE] = OPEN

    def note(self, *, input_tokens: int, cached_tokens: int, guided: bool) -> None:
        """What has become known with the first token; ``guided`` is whether all tokens of the answer are."""
        self._cells[_INPUT], self._cells[_CACHED], self._cells[_GUIDED] = input_tokens, cached_tokens, guided

    @property
    def spooled(self) -> bool:
        """Whether the reservation may stand in the node's spool."""
        return bool(self._cells[_SPOOLED])

    def note_spooled(self) -> None:
        """The reservation is about to be made in the node's spool, where it is looked for first from now on."""
        self._cells[_SPOOLED] = 1

    def finish(self, settlement: Settlement) -> None:
        """Keep ``settlement`` until it is in the store. The mark counts no more."""
        numbers = (int(settlement.begun), *(getattr(settlement, name) for name in _COUNTS))
        end = (*numbers, _known(settlement.image_bytes), _known(settlement.first_token_ms), settlement.total_ms)
        _END.pack_into(self._bytes, _END_AT, *end, settlement.outcome.encode()[:64], settlement.searches)
        self._cells[_STATE] = FINAL

    def free(self) -> memoryview:
        """What it held is settled; the memory, for another."""
        self._cells[_STATE] = FREE
        return self._bytes

    def read(self) -> Left:
        """What another process would find."""
        found = read_slot(bytes(self._bytes))
        assert found is not None, "a slot in use is not free"
        return found


@dataclass(frozen=True, slots=True)
class Left:
    """What a slot holds: the reservation ``id``, how far its answer has come, and its end, once that is made out."""

    id: str
    delivered: Counts
    input_tokens: int
    cached_tokens: int
    guided: bool
    spooled: bool
    end: Settlement | None

    def settlement(self, outcome: str) -> Settlement:
        """How a reservation ends whose worker is dead: as the worker made it out, or with what was delivered."""
        if self.end is not None:
            return self.end
        begun, output, reasoning = self.delivered
        if not begun:
            return Settlement(self.id, outcome, begun=False, final=False)
        return Settlement(
            self.id,
            outcome,
            begun=True,
            input_tokens=self.input_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=output,
            reasoning_tokens=reasoning,
            guided_tokens=output if self.guided else 0,
            generated_tokens=output,
            final=False,
        )


def read_slot(data: bytes) -> Left | None:
    """What the 256 bytes of a slot hold; ``None`` where that is nothing."""
    state, mark, input_tokens, cached_tokens, guided, spooled = struct.unpack_from("<6Q", data)
    if state not in (OPEN, FINAL):
        return None
    id = data[_ID_AT : _ID_AT + _ID_BYTES].rstrip(b"\0").decode("ascii")
    end = _read_end(id, data) if state == FINAL else None
    return Left(id, Counts.of(mark), input_tokens, cached_tokens, bool(guided), bool(spooled), end)


def _read_end(id: str, data: bytes) -> Settlement:
    begun, *numbers, image_bytes, first_token_ms, total_ms, outcome, searches = _END.unpack_from(data, _END_AT)
    return Settlement(
        id,
        outcome.rstrip(b"\0").decode(errors="replace"),
        bool(begun),
        **dict(zip(_COUNTS, numbers, strict=True)),
        image_bytes=None if image_bytes < 0 else image_bytes,
        first_token_ms=None if first_token_ms < 0 else first_token_ms,
        total_ms=total_ms,
        searches=searches,
    )


def _known(number: int | None) -> int:
    return -1 if number is None else number
