"""The load driver in Python, for machines without a C compiler: the same as ``native/load/``, and dearer.

``python -m bench.fallback.load SCRIPT PORT STREAMS RAMP REPEAT LIMIT START < REQUEST``; :mod:`bench.driver` tells what
the arguments mean.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import uvloop

from bench.fallback.http1 import ResponsesConnection
from bench.figures import Observation
from bench.script import read


class Player:
    """Plays one load; every stream has a connection of its own."""

    def __init__(self, ticks: Mapping[str, int], port: int, request: bytes) -> None:
        """``ticks`` are the words of the clock."""
        self._ticks, self._port, self._request = ticks, port, request
        self.observations: list[Observation] = []

    async def play(self, streams: int, ramp: float, repeat: float, limit: float, start: float) -> None:
        """Until all answers have ended or the limit is over; times in seconds, see :func:`bench.driver.play`."""
        connections = [await ResponsesConnection.open(self._port, self._ticks) for _ in range(streams)]
        try:
            async with asyncio.timeout_at(start + limit), asyncio.TaskGroup() as tasks:
                for position, connection in enumerate(connections):
                    begin = start + ramp * position / streams
                    tasks.create_task(self._one_after_the_other(connection, begin, start + repeat))
        except TimeoutError:
            # What was cut off is told by its observation.
            pass

    async def _one_after_the_other(self, connection: ResponsesConnection, begin: float, until: float) -> None:
        await asyncio.sleep(begin - time.monotonic())
        while True:
            seen = Observation(time.monotonic())
            self.observations.append(seen)
            try:
                await connection.stream(seen, self._request)
            except OSError as error:
                seen.failure = str(error)
                connection = await ResponsesConnection.open(self._port, self._ticks)
            if time.monotonic() >= until:
                connection.close()
                return


def main() -> None:
    """The command line."""
    script, port, streams, *times = sys.argv[1:]
    ticks = {word.decode().strip(): tick for tick, word in enumerate(read(Path(script)).words)}
    player = Player(ticks, int(port), sys.stdin.buffer.read())
    uvloop.run(player.play(int(streams), *map(float, times)))
    for observation in player.observations:
        print(json.dumps(asdict(observation)))


if __name__ == "__main__":
    main()
