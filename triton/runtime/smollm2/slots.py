"""The queue in front of the engine: as many threads as the engine has slots, and a bounded line of waiting requests."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from flavours.generation import Generation, pb_utils

_WATCH_SECONDS = 0.005

Run = Callable[[Generation, dict[str, Any]], None]


class QueueFull(Exception):
    """No request can wait any more; the message is TensorRT-LLM's."""


class Slots:
    """Runs requests in order of arrival. A request whose client leaves while it waits gives up its place at once."""

    def __init__(self, count: int, queue_limit: int, run: Run) -> None:
        self._queue_limit = queue_limit
        self._run = run
        self._free = count
        self._closing = False
        self._waiting: deque[tuple[Generation, dict[str, Any]]] = deque()
        self._changed = threading.Condition()
        targets = [self._work] * count + [self._watch]
        self._threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in self._threads:
            thread.start()

    def submit(self, generation: Generation, parameters: dict[str, Any]) -> None:
        """Take a request.

        Raises:
            QueueFull: all slots are busy and the queue has its full length.
        """
        with self._changed:
            if len(self._waiting) >= self._queue_limit + self._free:
                raise QueueFull(f"Maximum queue size of {self._queue_limit} has been reached, please try again later")
            self._waiting.append((generation, parameters))
            self._changed.notify_all()

    def close(self) -> None:
        """End the threads after the requests that they run."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if self._closing:
                    return
                self._free -= 1
                generation, parameters = self._waiting.popleft()
            try:
                self._run(generation, parameters)
            except Exception as error:
                # A fault in one request must not cost the slot.
                pb_utils.Logger.log_error(f"Generation failed: {error!r}")
                generation.fail("The model failed", pb_utils.TritonError.INTERNAL)
            finally:
                with self._changed:
                    self._free += 1

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if self._closing:
                    return
                waiting = list(self._waiting)
            gone = [entry for entry in waiting if entry[0].cancelled()]
            with self._changed:
                left = [entry for entry in gone if entry in self._waiting]
                for entry in left:
                    self._waiting.remove(entry)
                self._changed.wait_for(lambda: self._closing, _WATCH_SECONDS)
            for generation, _ in left:
                generation.close()
