"""Changes to a stream's events, to plant one fault each."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.core.conformance.streams import Json

Mutation = Callable[[list[Json]], Any]


def fresh(events: Iterable[Json]) -> list[Json]:
    """A copy in which no two events share a value."""
    return list(map(json.loads, map(json.dumps, events)))


def at(events: list[Json], name: str, nth: int = 0) -> int:
    """Where the ``nth`` event of a type is; ``response.`` may be left out."""
    return [place for place, event in enumerate(events) if event["type"] in (name, f"response.{name}")][nth]


def drop(name: str, nth: int = 0) -> Mutation:
    return lambda events: events.pop(at(events, name, nth))


def swap(name: str, nth: int = 0) -> Mutation:
    """Exchanges an event with the one after it."""

    def mutate(events: list[Json]) -> None:
        place = at(events, name, nth)
        events[place : place + 2] = [events[place + 1], events[place]]

    return mutate


def change(name: str, path: str, value: Any, nth: int = 0) -> Mutation:
    """Sets the member at a path such as ``response.output.0.id``."""

    def mutate(events: list[Json]) -> None:
        *steps, last = path.split(".")
        target: Any = events[at(events, name, nth)]
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        target[int(last) if last.isdigit() else last] = value

    return mutate


def insert(event: Json, before: str, nth: int = 0) -> Mutation:
    return lambda events: events.insert(at(events, before, nth), event)


def append(*more: Json) -> Mutation:
    return lambda events: events.extend(more)


def remove(name: str, member: str, nth: int = 0) -> Mutation:
    def mutate(events: list[Json]) -> None:
        *steps, last = member.split(".")
        target: Any = events[at(events, name, nth)]
        for step in steps:
            target = target[step]
        del target[last]

    return mutate


def everywhere(old: str, new: str) -> Mutation:
    """Replaces a piece of JSON in all events."""

    def mutate(events: list[Json]) -> None:
        text = json.dumps(events)
        assert old in text
        events[:] = json.loads(text.replace(old, new))

    return mutate
