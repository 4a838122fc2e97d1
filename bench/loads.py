"""The loads of the bench."""

from __future__ import annotations

from bench.fake_triton import PACED, UNPACED
from bench.load import Load

LEVELS = (1, 64, 256)
"""Concurrent streams."""
TTFT = 0.05
"""The fake Triton's time to the first token, in seconds."""
RAMP = 1.0
"""Seconds over which paced streams start."""
LIMIT = 8.0
"""Seconds after which a run is cut off."""


def paced(streams: int, rate: float, seconds: float) -> Load:
    """Every stream one request whose tokens come for ``seconds``, ``rate`` per second."""
    steady = (RAMP + TTFT + 0.5, TTFT + seconds - 1 / rate)
    return Load(streams, requests=streams, tokens=int(seconds * rate), ramp=RAMP, limit=LIMIT, steady=steady)


def unpaced(streams: int) -> Load:
    """Every stream one request whose tokens come at once: how fast a backlog is worked off."""
    return Load(streams, requests=streams, tokens=min(8_000, 32_000 // streams), ramp=0, limit=LIMIT)


def one_token() -> Load:
    """Short requests: what a request costs besides its tokens."""
    return Load(streams=16, requests=320, tokens=1, ramp=0, limit=LIMIT)


def loads(rate: float) -> list[tuple[str, Load, str]]:
    """Title, load and model of the table's rows."""
    return [
        *(("paced", paced(streams, rate, seconds=4), PACED) for streams in LEVELS),
        *(("unpaced", unpaced(streams), UNPACED) for streams in LEVELS),
        ("one token", one_token(), UNPACED),
    ]
