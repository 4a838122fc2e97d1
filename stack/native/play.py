"""Playing a script: the events of an answer as a stream or as a whole, the pauses in it, and how it breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

from stack.native import script
from stack.native.answer import Answer
from stack.native.http import Exchange
from stack.native.script import Json


async def play(exchange: Exchange, body: Json, number: int) -> None:
    """Play the script of a request."""
    steps = script.find(body)
    if (other := script.setting(steps, "http")) is not None:
        await _pauses(steps)
        await exchange.reply(other["status"], other.get("body", ""), other.get("headers", {}))
        return
    answer = Answer(body, number)
    longer, zipped = script.setting(steps, "length"), script.setting(steps, "gzip") is not None
    if body.get("stream"):
        pieces = _Pieces(exchange, script.setting(steps, "split"))
        if longer is None and not zipped:
            exchange.chunked("text/event-stream; charset=utf-8")
            await pieces.write(answer.begin())
            await _stream(pieces, answer, steps)
            return
        whole = b"".join([*answer.begin(), *_all(answer, steps)])
        await exchange.reply(200, whole, {"content-type": "text/event-stream"}, longer or 0, zipped)
        return
    await _pauses(steps)
    if (how := script.setting(steps, "break")) is not None:
        exchange.close(how == "reset")
        return
    for _ in _all(answer, steps):
        pass
    await exchange.reply(200, json.dumps(answer.response), {}, longer or 0, zipped)


async def _stream(pieces: _Pieces, answer: Answer, steps: Iterable[Any]) -> None:
    """All steps as they come, and the end."""
    incomplete = None
    for step in steps:
        match step:
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            case {"hang": _}:
                await asyncio.Event().wait()
            case {"break": how}:
                await pieces.exchange.drain()
                pieces.exchange.close(how == "reset")
                return
            case {"stop": _}:
                pieces.exchange.end()
                return
            case {"error": error}:
                await pieces.write(answer.error(error))
                pieces.exchange.end()
                return
            case {"incomplete": reason}:
                incomplete = reason
            case _:
                await pieces.write(answer.play(step))
    await pieces.write(answer.end(incomplete))
    pieces.exchange.end()


def _all(answer: Answer, steps: Iterable[Any]) -> Iterator[bytes]:
    """The events of all steps at once."""
    incomplete = None
    for step in steps:
        match step:
            case {"error": error}:
                yield from answer.error(error)
                return
            case {"incomplete": reason}:
                incomplete = reason
            case {"sleep": _} | {"hang": _} | {"break": _} | {"length": _} | {"gzip": _} | {"split": _}:
                pass
            case _:
                yield from answer.play(step)
    yield from answer.end(incomplete)


async def _pauses(steps: Iterable[Any]) -> None:
    """The pauses of an answer that is no stream, before its head."""
    for step in steps:
        match step:
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            case {"hang": _}:
                await asyncio.Event().wait()


class _Pieces:
    """Writes a stream, event by event or in pieces of ``size`` bytes."""

    def __init__(self, exchange: Exchange, size: int | None) -> None:
        self.exchange = exchange
        self._size = size

    async def write(self, events: Iterable[bytes]) -> None:
        """Write these events."""
        for event in events:
            size = self._size or max(1, len(event))
            for start in range(0, len(event), size):
                self.exchange.chunk(event[start : start + size])
                await self.exchange.drain()
