"""Whether a stream came as it was made, judged by when its deltas arrived."""

from __future__ import annotations

from collections.abc import Sequence

MANY = 10
"""Deltas that a stream needs for a judgement."""
SHORTEST_WAIT = 0.15
"""Seconds to the first delta: below, a fast endpoint and a buffer look the same."""
FASTEST = 0.0005
"""Seconds between two deltas that no model is faster than."""
WAIT_BY_SPREAD = 50
"""How many times as long as all deltas took the first one has to be waited for."""


def arrived_at_once(seconds: Sequence[float]) -> bool:
    """Whether deltas were held back until the last one was made.

    ``seconds`` says for each delta how long after the request it arrived. One answer is no proof: a reader that was not
    scheduled for a while sees the same.
    """
    if len(seconds) < MANY:
        return False
    wait, spread = seconds[0], seconds[-1] - seconds[0]
    return wait >= SHORTEST_WAIT and spread * WAIT_BY_SPREAD <= wait and spread <= FASTEST * len(seconds)
