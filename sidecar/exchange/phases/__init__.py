"""The phases of an exchange: each is an object that holds all it needs, and says what an event leads to.

Which events a phase heeds and what may follow stands in :mod:`sidecar.exchange.transitions`. A streamed answer's head
is held until the first generated token, a non-streamed one's until the last: a failure before that is a plain HTTP
error. After it, a stream ends with one ``error`` event.
"""

from __future__ import annotations

from sidecar.exchange.phases.generating import Answering, Calling
from sidecar.exchange.phases.phase import Context, Ended, Phase
from sidecar.exchange.phases.preparing import Preparing, Waiting
from sidecar.exchange.phases.storing import LookingUp, Storing

__all__ = [
    "Answering",
    "Calling",
    "Context",
    "Ended",
    "LookingUp",
    "Phase",
    "Preparing",
    "Storing",
    "Waiting",
]
