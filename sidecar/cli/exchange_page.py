"""The page about an exchange's life: a picture drawn from the table of transitions, and what its words mean.

Nothing on the page is written by hand but its frame: edges come from the table, sentences from docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from sidecar.exchange.events import Event
from sidecar.exchange.order import ASKS
from sidecar.exchange.phases import Phase

Transitions = Mapping[type[Phase], Mapping[type[Event], frozenset[type[Phase]]]]

_HEAD = """\
# The life of an exchange

<!-- Made from sidecar/exchange by `responses-sidecar docs`. -->

One request and its answer are one exchange: a state machine without I/O. Events go in, commands come out, and nothing
waits inside. An edge names the events that may lead from one phase to the next; an event that a phase has no edge for
changes nothing there.

`examples/drive_the_exchange.py` goes through all of it by hand.

"""


def exchange_page(transitions: Transitions) -> str:
    """The page for a table of transitions."""
    return "\n".join(
        (
            f"{_HEAD}{_picture(transitions)}",
            _table("Phases", "Phase", transitions),
            _table("Events", "Event", get_args(Event)),
            _table("Asks", "Ask", ASKS, "What an exchange has to wait for; the answer comes back as `Answered`.\n\n"),
        )
    )


def _picture(transitions: Transitions) -> str:
    """A Mermaid state diagram: one edge from a phase to the next, labelled with the events."""
    first, *_, last = (phase.__name__ for phase in transitions)
    edges = (f"[*] --> {first}", *_edges(transitions), f"{last} --> [*]")
    return "\n    ".join(("```mermaid\nstateDiagram-v2", *edges)) + "\n```\n"


def _edges(transitions: Transitions) -> Iterator[str]:
    for phase, heeded in transitions.items():
        for following in transitions:
            events = [event.__name__ for event, phases in heeded.items() if following in phases]
            if events:
                yield f"{phase.__name__} --> {following.__name__}: {', '.join(events)}"


def _table(title: str, column: str, classes: Iterable[type], words: str = "") -> str:
    rows = "".join(f"| `{each.__name__}` | {_first_sentence(each)} |\n" for each in classes)
    return f"## {title}\n\n{words}| {column} | |\n|---|---|\n{rows}"


def _first_sentence(documented: type) -> str:
    """The first sentence of a docstring, in Markdown."""
    text = " ".join((documented.__doc__ or "").split())
    sentence = re.split(r"(?<=\.) ", text, maxsplit=1)[0]
    return sentence.replace("``", "`")
