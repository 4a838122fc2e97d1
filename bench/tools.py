"""``./dev bench --tools``: what the tools of an agent cost, which come again with each turn of its conversation.

One process, without I/O. Every conversation has tools that were never seen before, all of them strict.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.chain import MODEL, REQUEST_HEADERS, catalog_of
from bench.report import markdown
from sidecar.exchange.asks import Facts
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.plan import make_plan
from sidecar.exchange.planned import Plan
from sidecar.guidance import engine
from sidecar.guidance.demands import argument_schemas
from sidecar.guidance.guides import note, unchecked
from sidecar.surfaces import SURFACES

COUNTS = (20, 200)
_CONVERSATIONS = 5
_PROPERTIES = 14
_LISTS = 6
_SURFACE = SURFACES["node"]


def measure_tools(tokenizer: Path) -> str:
    """A table: milliseconds of processor time, medians of some conversations, for tools of 2.4 KB."""
    engine.prepare()
    lines = [["tools", "turn", "schemas ms", "their grammars ms", "whole preparation besides grammars ms"]]
    for count in COUNTS:
        catalog = catalog_of(tokenizer)
        # Another conversation for each: what one has seen is remembered.
        schemas = [_schemas(_tools(count, seed)) for seed in range(_CONVERSATIONS)]
        whole = [_whole(catalog, _tools(count, seed)) for seed in range(_CONVERSATIONS, 2 * _CONVERSATIONS)]
        for turn in range(2):
            own, grammars = (median(one[turn][part] for one in schemas) * 1000 for part in range(2))
            plan = median(one[turn] for one in whole) * 1000
            lines.append([str(count), "first" if turn == 0 else "next", f"{own:.1f}", f"{grammars:.1f}", f"{plan:.1f}"])
    return markdown(lines)


def _schemas(tools: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Seconds to check and translate the schemas, and to make grammars of those not known, in two turns."""
    turns = []
    for _ in range(2):
        request = _SURFACE.check({"model": MODEL, "input": "x", "tools": tools}, lambda _: {}, None)
        started = time.process_time()
        guides = unchecked(it.guide for it in argument_schemas(request).values())
        checked = time.process_time()
        note(guides, engine.guide_faults([guide.document for guide in guides]))
        turns.append((checked - started, time.process_time() - checked))
    return turns


def _whole(catalog: Catalog, tools: list[dict[str, Any]]) -> list[float]:
    """Seconds from a body to the message for Triton, in two turns."""
    body = json.dumps({"model": MODEL, "input": "x", "tools": tools}).encode()
    turns = []
    for _ in range(2):
        request = RequestComplete(REQUEST_HEADERS, body, len(body), head_at=0, unix_time=0, at=0)
        started = time.process_time()
        plan = make_plan(Facts(_SURFACE, catalog, request, os.urandom(18)))
        turns.append(time.process_time() - started)
        assert isinstance(plan, Plan), plan
    return turns


def _tools(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(f"{count} {seed}")
    return [
        {"type": "function", "name": f"f{seed}_{index}", "strict": True, "parameters": _schema(chance)}
        for index in range(count)
    ]


def _schema(chance: random.Random) -> dict[str, Any]:
    properties: dict[str, Any] = {
        f"p{chance.randrange(10**6)}": {
            "type": chance.choice(["string", "integer", "boolean"]),
            "description": "What it is for, in some words of a tool's author, sixty of them. ",
        }
        for _ in range(_PROPERTIES)
    }
    choices = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}
    properties["options"] = _object({f"q{chance.randrange(10**6)}": choices for _ in range(_LISTS)})
    return _object(properties)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
