"""The life of an exchange in one table: the events that each phase heeds, and the phases that may follow.

An event that a phase does not list changes nothing there. ``docs/exchange.md`` is drawn from this table by
``responses-sidecar docs``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.exchange.events import (
    Abort,
    Answered,
    ClientGone,
    Event,
    RequestComplete,
    Tick,
    UpstreamBytes,
    UpstreamEnd,
    UpstreamHead,
)
from sidecar.exchange.phases import Answering, Calling, Ended, LookingUp, Phase, Preparing, Storing, Waiting

Following = frozenset[type[Phase]]


def _to(*phases: type[Phase]) -> Following:
    return frozenset(phases)


_AT_ANY_TIME: dict[type[Event], Following] = {ClientGone: _to(Ended), Abort: _to(Ended)}

TRANSITIONS: Mapping[type[Phase], Mapping[type[Event], Following]] = {
    Waiting: {
        RequestComplete: _to(Preparing, LookingUp, Ended),
        **_AT_ANY_TIME,
    },
    LookingUp: {
        Answered: _to(LookingUp, Ended),
        Tick: _to(LookingUp, Ended),
        **_AT_ANY_TIME,
    },
    Preparing: {
        Answered: _to(Preparing, Calling, Ended),
        Tick: _to(Preparing, Ended),
        **_AT_ANY_TIME,
    },
    Calling: {
        UpstreamHead: _to(Calling),
        UpstreamBytes: _to(Calling, Answering, Storing, Ended),
        UpstreamEnd: _to(Calling, Storing, Ended),
        Tick: _to(Calling, Ended),
        **_AT_ANY_TIME,
    },
    Answering: {
        UpstreamBytes: _to(Answering, Storing, Ended),
        UpstreamEnd: _to(Storing, Ended),
        Tick: _to(Answering, Ended),
        **_AT_ANY_TIME,
    },
    Storing: {
        Answered: _to(Storing, Ended),
        Tick: _to(Storing, Ended),
        **_AT_ANY_TIME,
    },
    Ended: {},
}
