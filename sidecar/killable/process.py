"""One process of a pool, as its parent sees it."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Any, Self

from sidecar.killable import child
from sidecar.killable.errors import CrashedError, OverrunError

# Of processor time, for importing what the functions need.
_START_SECONDS = 15.0
# How much of an answer is read at a time.
_READ_BYTES = 256 * 1024


class KillableProcess:
    """Performs one call at a time; :meth:`end` ends it whatever it does.

    asyncio's own pipes are used, and not multiprocessing's: those block, and need a thread for each process.
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._calls, self._answers = process, process.stdin, process.stdout
        self._idle = True
        self._exchanging = asyncio.Lock()

    @classmethod
    async def start(cls, memory: int, prepare: Callable[[], object] | None) -> Self:
        """A process that has called ``prepare`` and may then take ``memory`` bytes more.

        Raises what ``prepare`` raises.
        """
        # -P: this file's folder is no place to import from.
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                sys.executable, "-P", child.__file__, stdin=PIPE, stdout=PIPE, limit=_READ_BYTES, start_new_session=True
            )
        )
        try:
            process = cls(await asyncio.shield(starting))
        except asyncio.CancelledError:
            # Cancelled half-way, asyncio would leave pipes behind.
            await cls(await starting).end()
            raise
        try:
            await process._work(pickle.dumps((sys.path, memory, pickle.dumps(prepare))), _START_SECONDS)
        except BaseException:
            await process.end()
            raise
        return process

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether a call can be made: the process lives, none is under way, and none was given up."""
        return self._idle and self._process.returncode is None

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
        """What ``function`` returns; raises what it raises, and :class:`OverrunError` or :class:`CrashedError`."""
        return await self._work(pickle.dumps((function, arguments), pickle.HIGHEST_PROTOCOL), seconds)

    async def end(self) -> None:
        """End it, at once; returns when nothing of it is left."""
        self._idle = False
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._calls.close()
        async with self._exchanging:
            # The process is only let go when its output has been read to the end.
            while await self._answers.read(_READ_BYTES):
                pass
        await self._process.wait()

    async def _work(self, data: bytes, seconds: float) -> Any:
        self._idle = False
        try:
            async with asyncio.timeout(seconds * child.PATIENCE):
                returned, value = await self._exchange(data, seconds)
        except TimeoutError:
            raise OverrunError(f"the call lasted more than {seconds * child.PATIENCE:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._lost(seconds) from None
        self._idle = True
        if not returned:
            raise value
        return value

    async def _exchange(self, data: bytes, seconds: float) -> tuple[bool, Any]:
        async with self._exchanging:
            self._calls.writelines((child.CALL.pack(len(data), seconds), data))
            await self._calls.drain()
            (length,) = child.ANSWER.unpack(await self._answers.readexactly(child.ANSWER.size))
            answer: tuple[bool, Any] = pickle.loads(await self._answers.readexactly(length))
        return answer

    async def _lost(self, seconds: float) -> Exception:
        status = await self._process.wait()
        if status == -child.OUT_OF_TIME:
            return OverrunError(f"the call took more than {seconds:g} s of processor time")
        if status == child.OUT_OF_MEMORY:
            return OverrunError("the call took more memory than it may")
        return CrashedError(f"the process ended with status {status} in the middle of a call")
