"""Where an answer ends: at its end id, after a stop word, or at its length limit."""

from collections.abc import Sequence

from flavours.contract import Finish


class Stopping:
    """Counts one answer's ids. As with TensorRT-LLM, the end id or stop word that ends it is part of it."""

    def __init__(self, limit: int, end_id: int, stop_words: Sequence[Sequence[int]]) -> None:
        self.taken = 0
        self._limit = limit
        self._end_id = end_id
        self._stop_words = [tuple(word) for word in stop_words if word]
        self._longest = max(map(len, self._stop_words), default=0)
        self._tail: tuple[int, ...] = ()

    def take(self, ids: Sequence[int], ended: bool) -> tuple[list[int], Finish | None]:
        """The part of newly generated ids that belongs to the answer, and why it is finished with them, if it is.

        ``ended`` says that the engine generates no more: an end that it did not spell gets the end id.
        """
        kept: list[int] = []
        for id_ in ids:
            kept.append(id_)
            if finish := self._finish(id_):
                return kept, finish
        if ended and self._end_id >= 0:
            self.taken += 1
            kept.append(self._end_id)
        return kept, "stop" if ended else None

    def _finish(self, id_: int) -> Finish | None:
        self.taken += 1
        self._tail = (*self._tail, id_)[-self._longest :] if self._longest else ()
        stopped = any(self._tail[-len(word) :] == word for word in self._stop_words)
        if stopped or id_ == self._end_id:
            return "stop"
        return "length" if self.taken == self._limit else None
