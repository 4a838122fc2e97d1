"""A search for schemas that are slow for their size: ``python -m tests.hostile.slow_schemas --schemas 100000``.

It climbs: it changes the slowest schemas that it knows, and keeps what is slower by the byte. A schema that takes
longer than :data:`~tests.hostile.work.MOST_SECONDS` ends the process; it is the last line printed. At the end it prints
the slowest ones.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from sidecar.guidance.positions import subschemas
from sidecar.responses.json_schema import MAX_BYTES, MAX_LEVELS
from tests.hostile.schemas import HOSTILE, size
from tests.hostile.work import in_a_thread, limit, perform

KEPT = 12
# Below, what is measured is mostly the clock's grain.
LEAST_BYTES = 500
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


def changed(schema: Schema, others: list[Schema], chance: random.Random) -> Schema:
    """``schema`` with something in it changed, added, repeated or taken from another one."""
    new = copy.deepcopy(schema)
    place = chance.choice(list(places(new)))
    other = copy.deepcopy(chance.choice([*ATOMS, *places(chance.choice(others))]))
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


def climb(schemas: int, seed: int) -> list[tuple[float, int, Schema]]:
    """The slowest of so many ``schemas``: microseconds of CPU time by the byte, bytes, the schema."""
    chance = random.Random(seed)
    seeds = [*ATOMS, *(schema for schema, _ in HOSTILE.values() if size(schema) < SEED_BYTES)]
    best: list[tuple[float, int, Schema]] = [(0.0, size(schema), schema) for schema in seeds]
    for _ in range(schemas):
        schema = changed(chance.choice(best)[2], seeds, chance)
        bytes_ = size(schema)
        # Members that are added to the whole document need a level each.
        if bytes_ > MAX_BYTES or _levels(schema) > MAX_LEVELS:
            continue
        limit()
        before = time.process_time()
        perform(schema, chance.choice(ANSWERS))
        cost = (time.process_time() - before) * 1e6 / max(bytes_, LEAST_BYTES)
        best = sorted([*best, (cost, bytes_, schema)], key=lambda it: it[0], reverse=True)[: max(KEPT, len(seeds))]
        print(json.dumps([round(cost, 2), bytes_]), flush=True)
    return best[:KEPT]


def main() -> None:
    """Search, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for cost, bytes_, schema in reversed(climb(asked.schemas, asked.seed)):
        print(f"{cost:.1f} µs a byte, {bytes_} bytes: {json.dumps(schema)[:400]}")


if __name__ == "__main__":
    in_a_thread(main)
