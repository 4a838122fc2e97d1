"""A web server that says exactly what a test wants, and a resolver that says where it is."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address

import trustme
from aiohttp.abc import AbstractResolver, ResolveResult

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
"""The bytes of a whole HTTP answer, or what writes one."""

LOOPBACK = "127.0.0.1"


class Web:
    """A server on a loopback address. ``answers`` are by path; ``requests`` are the heads that came, as text."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = answers
        self.requests: list[str] = []
        self.server_names: list[str | None] = []
        self.running, self.most_running = 0, 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            answer = self.answers[head.split()[1].partition("?")[0]]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        self.running -= 1
        writer.close()


@contextlib.asynccontextmanager
async def web(
    answers: Mapping[str, Answer], *, tls: ssl.SSLContext | None = None, address: str = LOOPBACK, port: int = 0
) -> AsyncIterator[Web]:
    """A running server."""
    site = Web(answers)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: site.server_names.append(name)
    server = await asyncio.start_server(site.serve, address, port, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


def server_tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


class Resolver(AbstractResolver):
    """Answers from a table: for each name the addresses of its first look-up, its second …; the last one stays."""

    def __init__(self, table: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self.table = table
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        if host not in self.table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self.table[host]
        addresses = answers[min(self.asked.count(host), len(answers) - 1)]
        self.asked.append(host)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


def answer(body: bytes, *fields: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """A whole HTTP answer."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"elsewhere", f"Location: {location}", status=status)
