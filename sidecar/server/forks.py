"""Processes forked from a worker before its event loop began, for work that would keep the loop from its turns.

A thread shares the interpreter with the loop: while it works, each turn of the loop waits for it, and a token takes
several turns. A fork shares nothing but the memory of all that was loaded before, and gives way to the loops where
processors are short. Only a process of one thread can fork safely, so one that never has more is kept for it.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sidecar.killable import CrashedError
from sidecar.killable.child import give_way

Work = Callable[[Any, bytes], bytes]
"""What a fork does: from a value that can be pickled and the bytes that go with it, to bytes."""

_CALL = struct.Struct(">QQ")
"""Stands before a call: the length of the pickled value, and of the bytes."""
_ANSWER = struct.Struct(">?Q")
"""Stands before an answer: whether it was returned and not raised, and its length in bytes."""

# A third of the weight of a process that is not nice: a large request must not starve where others use all processors.
_NICENESS = 5
_THREADS = Path("/proc/self/task")


class Forks:
    """The forks of this process; each does one call at a time, and there are as many as there were calls at a time.

    To be made while the process has one thread, and entered in its event loop. ``work`` is what each does; a call that
    takes longer than ``seconds`` ends its fork. All of them end with the context, or with this process.
    """

    def __init__(self, work: Work, seconds: float) -> None:
        """Raises :class:`RuntimeError` where this process has further threads: a fork would hang on their locks."""
        if len(list(_THREADS.iterdir())) > 1:
            raise RuntimeError("only a process of one thread can fork")
        self._free: list[_Fork] = []
        self._control, theirs = socket.socketpair()
        if os.fork() == 0:
            self._control.close()
            _end_after(lambda: _fork_on_demand(theirs, work, seconds))
        theirs.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._control.close()
        for fork in self._free:
            fork.close()

    async def call(self, value: Any, data: bytes) -> bytes:
        """What ``work`` makes of a value and bytes; raises what it raises.

        Not to be cancelled: a fork whose answer nobody takes is lost.

        Raises:
            CrashedError: the fork ended in the middle of the call.
        """
        fork = self._free.pop() if self._free else await self._new()
        try:
            returned, answer = await fork.call(pickle.dumps(value), data)
        except BaseException as error:
            fork.close()
            if isinstance(error, asyncio.IncompleteReadError | ConnectionError):
                raise CrashedError("a fork ended in the middle of a call") from None
            raise
        self._free.append(fork)
        if not returned:
            raise pickle.loads(answer)
        return answer

    async def _new(self) -> _Fork:
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        return _Fork(*await asyncio.open_unix_connection(sock=ours))


class _Fork:
    """One of them, as the worker sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def call(self, value: bytes, data: bytes) -> tuple[bool, bytes]:
        self._writer.writelines((_CALL.pack(len(value), len(data)), value, data))
        await self._writer.drain()
        returned, length = _ANSWER.unpack(await self._reader.readexactly(_ANSWER.size))
        return returned, await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def _fork_on_demand(control: socket.socket, work: Work, seconds: float) -> None:
    """Fork for each socket that comes, to the end of the worker."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    # The system takes away the forks that have ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The supervisor listens to the worker's output for the worker's end, and must not wait for this process's.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.setsid()
    give_way(_NICENESS)
    while descriptors := socket.recv_fds(control, 1, 1)[1]:
        connection = socket.socket(fileno=descriptors[0])
        if os.fork() == 0:
            control.close()
            _end_after(lambda connection=connection: _serve(connection, work, seconds))  # type: ignore[misc]
        connection.close()
    # The forks that are still at work, and this process.
    os.killpg(0, signal.SIGKILL)


def _serve(connection: socket.socket, work: Work, seconds: float) -> None:
    """Do what is called for, to the end of the worker."""
    stream = connection.makefile("rwb")
    while len(head := stream.read(_CALL.size)) == _CALL.size:
        value_length, data_length = _CALL.unpack(head)
        value, data = stream.read(value_length), stream.read(data_length)
        # Nobody handles this signal, so that the system ends the process.
        signal.setitimer(signal.ITIMER_REAL, seconds)
        returned, answer = _perform(work, value, data)
        signal.setitimer(signal.ITIMER_REAL, 0)
        stream.write(_ANSWER.pack(returned, len(answer)))
        stream.write(answer)
        stream.flush()


def _perform(work: Work, value: bytes, data: bytes) -> tuple[bool, bytes]:
    try:
        return True, work(pickle.loads(value), data)
    except Exception as error:
        # Without the frames, which hold the request.
        return False, pickle.dumps(error.with_traceback(None))


def _end_after(task: Callable[[], None]) -> None:
    """End this process after ``task``, without what the process that it was forked from would do at its end."""
    status = 1
    try:
        task()
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        # The worker has gone.
        status = 0
    finally:
        os._exit(status)
