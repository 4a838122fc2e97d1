"""What a schema may hold if a grammar is to be made of it, so that this takes a second at most and no deep recursion.

An engine tells the patterns of an object's properties apart pair by pair; its work doubles with each pattern that one
value has to match, and is multiplied by the alternatives of each of several lists; it follows references in a recursion
whose end would be the end of the process. The size of a schema as text is limited where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any
from urllib.parse import unquote

from sidecar.guidance.positions import DEFINITIONS, Path, subschemas

MOST_SCHEMAS = 5_000
"""Schemas in a schema."""
MOST_LEVELS = 800
"""Schemas one inside another, where each reference may lead to its target once."""
MOST_PATTERNS = 8
"""``pattern`` that one value may have to match."""
MOST_PAIRS = 1_000
"""Pairs of ``patternProperties`` of one object, all objects together."""
MOST_COMBINATIONS = 1_000
"""Ways to choose one of each of several alternatives for a value, all values together."""

_ALTERNATIVES = ("anyOf", "oneOf")
_SAME_VALUE = frozenset({"allOf", *_ALTERNATIVES})
_WEIGHTY = tuple(f'"{keyword}"' for keyword in ("$ref", "pattern", "patternProperties", *sorted(_SAME_VALUE)))


@dataclass(frozen=True, slots=True)
class _Weight:
    """Of a schema: the patterns and pattern properties that meet at one value at or below it, its own alternatives, and
    the schemas one inside another.
    """

    patterns: int
    properties: int
    alternatives: int
    levels: int


# In a recursion, that which is still being weighed: the same schema, at another value.
_NONE = _Weight(0, 0, 1, 0)
_LEAF = _Weight(0, 0, 1, 1)


def may_exceed(text: str) -> bool:
    """Whether the schema ``text``, of a few levels, can go beyond a limit: most tools say nothing that could."""
    return any(keyword in text for keyword in _WEIGHTY)


def excess(document: Mapping[str, Any]) -> str | None:
    """Where the self-contained schema ``document`` goes beyond a limit, in words; ``None`` if it does not."""
    return _Weighing(document).excess()


class _Weighing:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._weights: dict[int, _Weight] = {}
        self._members: dict[int, list[tuple[str, Any]]] = {}
        self._paths: dict[int, tuple[int, Path]] = {}
        self._targets: dict[str, Any] = {}
        self._pairs = 0
        self._combinations = 0

    def excess(self) -> str | None:
        for schema in self._from_inside():
            weight = self._weights[id(schema)] = self._weigh(schema)
            reason = self._judge(weight)
            if reason is not None:
                path = self._path(schema)
                return f"{reason} at '{path}'" if path else reason
        targets = {id(target): target for target in [self._document, *self._targets.values()]}
        levels = sum(self._weights.get(key, _NONE).levels for key in targets)
        return f"its references lead more than {MOST_LEVELS} levels deep" if levels > MOST_LEVELS else None

    def _judge(self, weight: _Weight) -> str | None:
        if weight.patterns > MOST_PATTERNS:
            return f"more than {MOST_PATTERNS} patterns for one value"
        if self._pairs > MOST_PAIRS:
            return f"more than {MOST_PAIRS} pairs of patternProperties to tell apart"
        if self._combinations > MOST_COMBINATIONS:
            return f"more than {MOST_COMBINATIONS} combinations of alternatives"
        return None

    def _from_inside(self) -> Iterator[dict[str, Any]]:
        """Each schema, those in it and those it refers to before it, if they do not lead back to it."""
        stack: list[tuple[Any, bool]] = [(self._document, False)]
        seen: set[int] = set()
        while stack:
            schema, opened = stack.pop()
            if opened:
                yield schema
            elif isinstance(schema, dict) and id(schema) not in seen:
                seen.add(id(schema))
                stack.append((schema, True))
                members = self._members[id(schema)] = []
                for step, _, member in subschemas(schema):
                    self._paths.setdefault(id(member), (id(schema), step))
                    stack.append((member, False))
                    members.append((step[0], member))
                if "$ref" in schema:
                    stack.append((self._target(schema["$ref"]), False))

    def _weigh(self, schema: Mapping[str, Any]) -> _Weight:
        if not (self._members[id(schema)] or "$ref" in schema):
            return self._weigh_leaf(schema)
        meeting = [self._weight_of(member) for member in schema.get("allOf", ())]
        if "$ref" in schema:
            meeting.append(self._weight_of(self._target(schema["$ref"])))
        for keyword in _ALTERNATIVES:
            if keyword in schema:
                meeting.append(_one_of([self._weight_of(member) for member in schema[keyword]]))
        members = [(key, self._weight_of(member)) for key, member in self._members[id(schema)]]
        inside = [weight for key, weight in members if key not in _SAME_VALUE and key not in DEFINITIONS]
        own_patterns, own_properties = int("pattern" in schema), len(schema.get("patternProperties", ()))
        alternatives = [weight.alternatives for weight in meeting]
        if own_patterns or meeting:
            alternatives.append(len(schema.get("enum", ())) or 1)
        weight = _Weight(
            max([own_patterns, *(it.patterns for it in inside)]) + sum(it.patterns for it in meeting),
            max([own_properties, *(it.properties for it in inside)]) + sum(it.properties for it in meeting),
            prod(alternatives),
            1 + max((it.levels for key, it in members if key not in DEFINITIONS), default=0),
        )
        # A lone reference or alternative adds nothing to what it leads to.
        if own_properties or len(schema.keys() - DEFINITIONS) > 1 or len(meeting) > 1:
            self._pairs += weight.properties * (weight.properties - 1) // 2
        if sum(count > 1 for count in alternatives) > 1 or (own_patterns and weight.alternatives > 1):
            self._combinations += weight.alternatives
        return weight

    def _weigh_leaf(self, schema: Mapping[str, Any]) -> _Weight:
        """The weight of a schema without others in it: the most frequent case."""
        if "pattern" not in schema:
            return _LEAF
        alternatives = len(schema.get("enum", ())) or 1
        if alternatives > 1:
            self._combinations += alternatives
        return _Weight(1, 0, alternatives, 1)

    def _weight_of(self, schema: Any) -> _Weight:
        return self._weights.get(id(schema), _NONE)

    def _target(self, reference: str) -> Any:
        if reference not in self._targets:
            target: Any = self._document
            for step in unquote(reference).split("/")[1:]:
                name = step.replace("~1", "/").replace("~0", "~")
                target = target[int(name)] if isinstance(target, list) else target[name]
            self._targets[reference] = target
        return self._targets[reference]

    def _path(self, schema: Mapping[str, Any]) -> str:
        steps: list[str] = []
        at = id(schema)
        while at in self._paths:
            at, path = self._paths[at]
            steps.append("".join(f".{step}" for step in path))
        return "".join(reversed(steps))


def _one_of(members: list[_Weight]) -> _Weight:
    """What alternatives weigh together: a value meets one of them."""
    return _Weight(
        max(member.patterns for member in members),
        max(member.properties for member in members),
        sum(member.alternatives for member in members),
        0,
    )
