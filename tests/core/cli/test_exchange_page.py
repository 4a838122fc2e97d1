"""The page about the exchange shows the table of transitions, all of it and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from sidecar.cli.exchange_page import Transitions, exchange_page
from sidecar.exchange.events import ClientGone, RequestComplete, Tick
from sidecar.exchange.order import ASKS
from sidecar.exchange.phases import Answering, Ended, Waiting
from sidecar.exchange.transitions import TRANSITIONS
from sidecar.server.performers import make_performers

TOY: Transitions = {
    Waiting: {RequestComplete: frozenset({Answering}), Tick: frozenset({Waiting, Answering})},
    Answering: {ClientGone: frozenset({Ended})},
    Ended: {},
}


def drawn(page: str) -> Counter[tuple[str, str, str]]:
    """Phase, event and next phase of every edge in the picture."""
    edges = re.findall(r"^    (\w+) --> (\w+): (.+)$", page, re.MULTILINE)
    return Counter((phase, event, following) for phase, following, events in edges for event in events.split(", "))


@pytest.mark.parametrize("transitions", [TRANSITIONS, TOY], ids=["real", "toy"])
def test_every_transition_is_drawn_once(transitions: Transitions) -> None:
    assert drawn(exchange_page(transitions)) == Counter(
        (phase.__name__, event.__name__, following.__name__)
        for phase, heeded in transitions.items()
        for event, phases in heeded.items()
        for following in phases
    )


def test_a_pair_of_phases_has_one_edge() -> None:
    edges = [line.partition(":")[0] for line in exchange_page(TRANSITIONS).splitlines() if " --> " in line]
    assert len(edges) == len(set(edges))


def test_the_picture_begins_with_the_first_phase_and_ends_with_the_last() -> None:
    picture = exchange_page(TOY).partition("```mermaid\n")[2].partition("```")[0].splitlines()
    assert picture == [
        "stateDiagram-v2",
        "    [*] --> Waiting",
        "    Waiting --> Waiting: Tick",
        "    Waiting --> Answering: RequestComplete, Tick",
        "    Answering --> Ended: ClientGone",
        "    Ended --> [*]",
    ]


def test_of_a_docstring_only_the_first_sentence_is_shown() -> None:
    assert "| `Tick` | Time has passed. |" in exchange_page(TRANSITIONS).splitlines()
    assert "| `RequestComplete` | The client's whole request has come. |" in exchange_page(TRANSITIONS).splitlines()


def test_the_asks_are_those_that_a_worker_has_performed() -> None:
    nothing, there = cast(Any, None), cast(Any, MagicMock())
    performed = make_performers(
        nothing,
        nothing,
        there,
        nothing,
        nothing,
        storing=there,
        idempotency=there,
        log=there,
        directing=there,
        limits=nothing,
        worker="w",
    )
    assert tuple(performed) == ASKS
