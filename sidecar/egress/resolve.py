"""Host names to addresses, so that a name that takes long holds up nobody else.

The system's resolver blocks a thread for as long as it wants to, often ten seconds and more, and the clients choose the
names. So the loop's executor is not used for it: each look-up has a thread of its own, there are enough of them, a
name has one at a time, and a request waits for few at a time and not for long.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from ipaddress import ip_address
from threading import Thread

from aiohttp.abc import AbstractResolver, ResolveResult

from sidecar.config.models import ImageLimits
from sidecar.egress.guard import Address, no_public_address
from sidecar.egress.held import no_capacity
from sidecar.responses.errors import ApiError

# A thread that waits costs little more than a few touched pages of its stack.
_MAX_THREADS = 64
_PER_REQUEST = 2

_Key = tuple[str, int, socket.AddressFamily]
_Answer = asyncio.Future[list[ResolveResult]]


class SystemResolver(AbstractResolver):
    """The system's resolver, ``getaddrinfo``; one serves all requests of a worker."""

    def __init__(self, max_threads: int = _MAX_THREADS) -> None:
        self._max_threads = max_threads
        self._running: dict[_Key, _Answer] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of ``host``. A look-up that is given up goes on, for whoever asks next.

        Raises:
            ApiError: ``capacity_unavailable``, too many names are being looked up.
            OSError: the name has none.
        """
        key = host, port, family
        if key not in self._running:
            self._begin(key)
        return await asyncio.shield(self._running[key])

    async def close(self) -> None:
        """Nothing: the threads end by themselves, and hold up no end of the process."""

    def _begin(self, key: _Key) -> None:
        if len(self._running) >= self._max_threads:
            raise no_capacity()
        loop = asyncio.get_running_loop()
        answer: _Answer = loop.create_future()

        def finish(result: list[ResolveResult] | OSError) -> None:
            del self._running[key]
            if isinstance(result, OSError):
                answer.set_exception(result)
                # There may be nobody left to be told.
                answer.exception()
            else:
                answer.set_result(result)

        def look_up() -> None:
            try:
                result: list[ResolveResult] | OSError = _look_up(*key)
            except OSError as error:
                result = error
            except UnicodeError:
                result = socket.gaierror(socket.EAI_NONAME, "not a host name")
            # The loop may have ended in the meantime.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, result)

        self._running[key] = answer
        Thread(target=look_up, name="resolve", daemon=True).start()


class CheckedResolver(AbstractResolver):
    """One request's look-ups: of names all of whose addresses are allowed; one with one that is not is refused.

    At most two run at a time, each for ``lookup_timeout`` seconds, of ``max_hosts`` names in all.
    """

    def __init__(self, resolver: AbstractResolver, allows: Callable[[Address], bool], limits: ImageLimits) -> None:
        self._resolver = resolver
        self._allows = allows
        self._limits = limits
        self._hosts: set[str] = set()
        self._slots = asyncio.Semaphore(_PER_REQUEST)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of ``host``; raises :class:`ApiError`, and :class:`OSError` where there are none."""
        self._hosts.add(host)
        if len(self._hosts) > self._limits.max_hosts:
            raise ApiError("invalid_request", f"A request's images are on more than {self._limits.max_hosts} hosts.")
        async with self._slots:
            try:
                async with asyncio.timeout(self._limits.lookup_timeout):
                    results = await self._resolver.resolve(host, port, family)
            except TimeoutError as error:
                raise ApiError(
                    "invalid_request", "The address of an image's host could not be found in time."
                ) from error
        if not results or not all(self._allows(ip_address(result["host"])) for result in results):
            raise no_public_address()
        return results

    async def close(self) -> None:
        """Nothing: the resolver that is asked serves others too."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            # With its scope, where an IPv6 address has one.
            host=socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0],
            port=port,
            family=found_family,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for found_family, _, protocol, _, address in found
    ]
