"""Requests that are large, clients that do not read, and what they take."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.cpu import cpu_seconds, family
from bench.figures import Observation
from bench.nodes import Node

MIB = 2**20
_MOST_TOKENS = 120_000
# A client that reads less than any answer has.
_SMALL_BUFFER = 4096


def request(node: Node, members: dict[str, Any]) -> bytes:
    """A streamed request of these members, head and body."""
    body = json.dumps({"max_output_tokens": _MOST_TOKENS, "stream": True, "store": False, **members}).encode()
    head = [
        f"POST {node.path}/responses HTTP/1.1",
        "host: node",
        f"authorization: Bearer {node.key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def tools(count: int, words: str = "Looks it up.") -> list[dict[str, Any]]:
    """So many functions as an agent brings them, each described in ``words``."""
    fields = {f"field_{index}": {"type": "string", "description": "Which one."} for index in range(5)}
    parameters = {"type": "object", "properties": fields, "required": ["field_0"]}
    return [
        {"type": "function", "name": f"tool_{index}", "description": words, "parameters": parameters}
        for index in range(count)
    ]


def bodies(model: str) -> dict[str, dict[str, Any] | None]:
    """Members of heavy requests by what they are; nothing first."""
    plain = {"model": model, "input": "x"}
    return {
        "nothing else": None,
        "prompts of 100,000 tokens": {**plain, "input": "word " * 100_000},
        "bodies of 10 MiB": {**plain, "input": "word " * (10 * MIB // 5 - 100)},
        "4 MB of tools": {**plain, "tools": tools(1000, words="What it is about. " * 220)},
    }


@contextmanager
def again_and_again(node: Node, members: dict[str, Any] | None) -> Iterator[Counter[str]]:
    """A client makes one request after the other until the context is left; how often each status was answered."""
    answers: Counter[str] = Counter()
    if members is None:
        yield answers
        return
    over = threading.Event()
    client = threading.Thread(target=_repeat, args=(node.port, request(node, members), answers, over))
    client.start()
    try:
        yield answers
    finally:
        over.set()
        client.join()


def _repeat(port: int, data: bytes, answers: Counter[str], over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(("127.0.0.1", port)) as connection:
            # An answer may come, and the connection be closed, before all has been sent.
            with suppress(ConnectionError):
                connection.sendall(data)
            with suppress(ConnectionError):
                answers[connection.recv(64)[9:12].decode()] += 1


@contextmanager
def deaf_clients(port: int, data: bytes, count: int) -> Iterator[None]:
    """So many clients that ask and never read."""
    with ExitStack() as open_connections:
        for _ in range(count):
            connection = open_connections.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
            connection.connect(("127.0.0.1", port))
            connection.sendall(data)
        yield


def resident(pids: Sequence[int]) -> int:
    """The resident memory of the processes in bytes."""
    statuses = (Path(f"/proc/{pid}/status").read_text().splitlines() for pid in pids)
    return sum(int(line.split()[1]) * 1024 for status in statuses for line in status if line.startswith("VmRSS"))


def processor_seconds(node: Node) -> float:
    """Processor time that the node's parts have used so far."""
    return cpu_seconds(family(node.parts.values()))


def gaps_of(seen: Observation) -> list[float]:
    """Seconds between the tokens of one answer."""
    return [later - earlier for earlier, later in itertools.pairwise(seen.arrivals)]
