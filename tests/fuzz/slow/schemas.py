"""Schemas, wherever a request may hold one, and answers by them."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

from sidecar.guidance.positions import subschemas
from sidecar.responses.json_schema import MAX_BYTES, MAX_LEVELS
from tests.fuzz.slow.search import Target
from tests.hostile.schemas import HOSTILE, size
from tests.hostile.work import MOST_CALLS, calls, look_at, perform

SECONDS = 3.0
"""A second at most for each of the three places of a request where a grammar is made."""
SECONDS_PER_BYTE = 30e-6
SEED_BYTES = 2_000
ATOMS: list[dict[str, Any]] = [
    {"pattern": "^[ab]*a[ab]{9}$"},
    {"pattern": r"\p{L}+.*\d{2,40}"},
    {"minLength": 3, "maxLength": 900},
    {"enum": ["ab", "ba", "aab", 7]},
    {"const": {"a": [1, 2]}},
    {"type": "number", "minimum": 0.123456789, "maximum": 1e12},
    {"type": "integer", "multipleOf": 7919},
    {"type": "array", "minItems": 3, "maxItems": 700},
    {"type": "array", "prefixItems": [{}, {"type": "null"}], "items": {"type": "string"}},
    {"type": "object", "required": ["a", "b"], "additionalProperties": {"type": "string"}},
    {"patternProperties": {"^a+$": {}, "^b[ab]{3}$": {"type": "null"}}},
    {"properties": {"a": {"type": "string"}, "b": {}}},
    {"anyOf": [{"type": "string"}, {"type": "object"}]},
    {"oneOf": [{"const": 1}, {"const": "a"}]},
    {"$ref": "#"},
]
ANSWERS = ['{"a": {"b": "ab"}}', '["ab", {"a": 7}]', json.dumps("ab" * 400), json.dumps({"ab" * 9: [1] * 400})]

Schema = dict[str, Any]


def places(schema: Schema) -> Iterator[Schema]:
    """Each object that is a schema in ``schema``, itself first."""
    yield schema
    for _, _, member in subschemas(schema):
        if isinstance(member, dict):
            yield from places(member)


def _changed(schema: Schema, giver: Schema, chance: random.Random) -> Schema:
    new = copy.deepcopy(schema)
    place = chance.choice(list(places(new)))
    other = copy.deepcopy(chance.choice([*ATOMS, *places(giver)]))
    match chance.randrange(8):
        case 0:
            place |= other
        case 1:
            key = chance.choice(["allOf", "anyOf"])
            place[key] = [*place.get(key, []), other]
        case 2:
            place.setdefault("properties", {})[f"p{chance.randrange(1000)}"] = other
        case 3:
            place.setdefault("patternProperties", {})[f"^[ab]*a[ab]{{9}}x{chance.randrange(1000)}$"] = other
        case 4:
            name = f"d{chance.randrange(6)}"
            new.setdefault("$defs", {}).setdefault(name, other)
            place["$ref"] = f"#/$defs/{name}"
        case 5:
            _repeat(place, chance)
        case 6 if place:
            del place[chance.choice(list(place))]
        case _:
            _scale(place, chance)
    return new


def _repeat(place: Schema, chance: random.Random) -> None:
    """Make twice as many of the members of a keyword."""
    holders = [key for key, value in place.items() if isinstance(value, list | dict) and value]
    if not holders:
        return
    key = chance.choice(holders)
    value = place[key]
    if isinstance(value, list):
        place[key] = value + copy.deepcopy(value)
    else:
        value |= {f"{name}{chance.randrange(1000)}": copy.deepcopy(member) for name, member in value.items()}


def _scale(place: Schema, chance: random.Random) -> None:
    for key, value in place.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            place[key] = value * chance.choice([2, 3, 10])
        elif key == "pattern" and len(value) < 300:
            place[key] = chance.choice([f"({value}){{1,30}}", f"{value}|{value}x", f"{value}.*{value}", f"[^a]{value}"])


def _levels(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if members is None else 1 + max(map(_levels, members), default=0)


class Schemas(Target[Schema]):
    """Schemas that a request may hold."""

    # One more definition makes each new, since what was looked at once is remembered.
    most_bytes = MAX_BYTES - 50

    def __init__(self) -> None:
        self._answers = random.Random(1)
        self._tried = 0

    def seeds(self) -> Sequence[Schema]:
        """Atoms, and the small ones of those that were slow once."""
        return [*ATOMS, *(schema for schema, _ in HOSTILE.values() if size(schema) < SEED_BYTES)]

    def changed(self, old: Schema, other: Schema, chance: random.Random) -> Schema:
        """``old`` with something in it changed, added, repeated or taken from ``other``."""
        new = _changed(old, other, chance)
        # Members that are added to the whole document need a level each.
        return new if _levels(new) <= MAX_LEVELS else old

    def text(self, input: Schema) -> str:
        """The schema as JSON."""
        return json.dumps(input, ensure_ascii=False)

    def size(self, input: Schema) -> int:
        """The bytes of the schema as JSON."""
        return size(input)

    def share(self, input: Schema) -> float:
        """By the Python functions called, and by the CPU time of an engine and a check."""
        bytes_ = size(input)
        called = calls(lambda: look_at(input)) / (MOST_CALLS * (bytes_ + 100))
        self._tried += 1
        definitions = input.get("$defs", {})
        new = {**input, "$defs": {**definitions, f"new{self._tried}": {}}} if isinstance(definitions, dict) else input
        before = time.process_time()
        perform(new, self._answers.choice(ANSWERS))
        took = time.process_time() - before
        return max(called, took / (SECONDS + SECONDS_PER_BYTE * bytes_))
