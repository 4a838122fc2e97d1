"""The load driver as a process: plays a load on one port of this machine and says when each token arrived.

It takes the script of the fake model server (for the words), the port, the number of streams, and in seconds: over how
long the streams begin, for how long each sends one request after the other (0: one request), when it gives up, and the
moment of CLOCK_MONOTONIC at which it starts. The request, head and body, is its standard input. Each line of its output
is an :class:`bench.figures.Observation` as JSON.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Observation
from bench.loads import LIMIT, RAMP, Load
from stack.paths import ROOT

# From the moment at which the driver is started until it sends the first request, in seconds, plus so much per stream.
_START_SECONDS = 0.1
_START_SECONDS_PER_STREAM = 0.0002


class Run:
    """A load that is being played."""

    def __init__(self, command: Sequence[str], script: Path, port: int, load: Load, request: bytes) -> None:
        """Begin; ``command`` starts the driver."""
        self.start = time.monotonic() + _START_SECONDS + _START_SECONDS_PER_STREAM * load.streams
        numbers = [port, load.streams, RAMP if not load.repeat else 0, load.repeat, LIMIT, self.start]
        argv = [*command, str(script), *map(str, numbers)]
        self._process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None, "it was asked for"
        self._process.stdin.write(request)
        self._process.stdin.close()

    def observations(self) -> list[Observation]:
        """What was seen, once the load is over.

        Raises:
            subprocess.CalledProcessError: the driver failed, as it does where nothing listens on the port.
        """
        assert self._process.stdout is not None, "it was asked for"
        lines = self._process.stdout.read().splitlines()
        if self._process.wait():
            raise subprocess.CalledProcessError(self._process.returncode, self._process.args)
        return [Observation(**json.loads(line)) for line in lines]


def request(port: int, path: str, key: str, model: str) -> bytes:
    """A streamed request to the Responses API; how many tokens it gets is the model server's to say."""
    body = {
        "model": model,
        "input": "Name the moments as they pass.",
        "max_output_tokens": 4096,
        "stream": True,
        "store": False,
    }
    content = json.dumps(body)
    head = [
        f"POST {path}/responses HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"content-length: {len(content)}",
    ]
    return "\r\n".join([*head, "", content]).encode()
