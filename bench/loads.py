"""The loads of the bench."""

from __future__ import annotations

from dataclasses import dataclass

TTFT = 0.05
"""The fake model server's time to the first token, in seconds."""
RAMP = 0.4
"""Seconds over which the streams of a load begin, so that they do not tick together unless they are to."""
LIMIT = 30.0
"""Seconds after which a run is cut off."""
_SETTLE = 0.15


@dataclass(frozen=True)
class Load:
    """``streams`` streams of one request each, whose ``tokens`` tokens come ``rate`` times in a second.

    ``in_step``: the tokens of all streams come at the same moments, as an in-flight batch emits them. Where ``repeat``
    is not 0, every stream sends one request after the other for so many seconds.
    """

    name: str
    streams: int
    rate: float
    tokens: int
    in_step: bool = False
    repeat: float = 0.0

    @property
    def interval(self) -> float:
        """Seconds between two tokens of a stream."""
        return 1 / self.rate

    @property
    def steady(self) -> tuple[float, float]:
        """When all streams run, in seconds after the start: what a token costs is measured then."""
        if self.repeat:
            return 0.1, self.repeat
        return RAMP + TTFT + _SETTLE, TTFT + (self.tokens - 1) * self.interval


def paced(streams: int, rate: float, seconds: float, *, in_step: bool = False) -> Load:
    """Every stream one request whose tokens come for ``seconds``, ``rate`` per second."""
    name = "in_step" if in_step else f"{streams}x{rate:.0f}"
    return Load(name, streams, rate, int(seconds * rate), in_step)


def one_token(seconds: float) -> Load:
    """Requests for one token, 16 at a time, for ``seconds``: what a request costs besides its tokens."""
    return Load("one_token", streams=16, rate=1, tokens=1, repeat=seconds)


def main_loads(seconds: float) -> list[Load]:
    """The loads that every run plays."""
    return [
        paced(64, 50, seconds),
        paced(64, 50, seconds, in_step=True),
        paced(256, 40, seconds),
        one_token(seconds * 0.75),
    ]


def many_streams(seconds: float) -> list[Load]:
    """Loads that ask whether so many streams can be kept up with."""
    return [paced(512, 40, seconds), paced(1000, 20, seconds)]
