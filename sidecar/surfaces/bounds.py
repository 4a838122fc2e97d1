"""What a surface lets one request take, whichever model it is for."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Bounds:
    """``seconds`` is the time from a request's head to the end of its answer.

    ``silence`` is for how many seconds the model of a stream may say nothing; comments that keep the connection alive
    are not the model's. ``search_seconds`` take the place of ``seconds`` where the model may search the web.
    ``request_bytes`` is the size of a body, ``None`` where only models set one. Models have
    limits of their own, of which these take nothing away.
    """

    request_bytes: int | None = None
    seconds: float = inf
    silence: float = inf
    search_seconds: float = inf


UNBOUNDED = Bounds()
"""Nothing beyond what the models set."""
