"""How dear it is to wake up on this machine, without which CPU per token at low load cannot be read."""

from __future__ import annotations

import json
import os
import socket
import time

from bench.cpu import cpu_seconds

PAUSE = 0.01
"""Seconds of sleep before each piece of work that is measured cold."""


def wake_up_cost(runs: int = 100) -> tuple[float, float]:
    """µs of processor time for one small piece of work: in a tight loop, and after a pause of :data:`PAUSE` seconds.

    The work is what a proxy does for a token: one small message written, read and parsed. A core that has slept runs
    it with cold caches, and on a virtual machine pays for its wake-up too.
    """
    return _cost(runs * 20, pause=0), _cost(runs, pause=PAUSE)


def _cost(runs: int, pause: float) -> float:
    here, there = socket.socketpair()
    message = json.dumps({"delta": " token", "sequence_number": 1, "where": list(range(20))}).encode()
    with here, there:
        before = cpu_seconds([os.getpid()])
        for _ in range(runs):
            here.send(message)
            json.loads(there.recv(1024))
            time.sleep(pause)
        return (cpu_seconds([os.getpid()]) - before) / runs * 1e6
