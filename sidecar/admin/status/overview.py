"""What the page shows of the node: its last hour, what goes on, models, failures. It names no organization."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

from sidecar.admin.status.node import Node
from sidecar.exchange.catalog import Served, ServedModel
from sidecar.generation.formats import FORMATS
from sidecar.generation.reasoning import REASONING
from sidecar.responses.errors import CODES
from sidecar.responses.json_text import Json
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.surface import Surface
from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.metrics import Gauges, read_gauges
from sidecar.telemetry.recent.failures import Failure, read_failures
from sidecar.telemetry.recent.steps import STEP_SECONDS, Count, Step, read_steps, together

_FAILURES = 50
# A plot has a point for so many steps together.
_STEPS_OF_A_BIN = 3


def overview(node: Node, now: float | None = None) -> Json:
    """All of it at ``now`` (seconds since the epoch). This reads files: it is not for an event loop."""
    at = time.time() if now is None else now
    catalog, gauges, steps = node.catalog(), read_gauges(node.metrics), read_steps(node.recent, at)
    total = partial(_total, gauges)
    return {
        "node": catalog.node,
        "at": round(at, 3),
        "now": {
            "streams": total(table.STREAMS),
            "requests": total(table.UNDER_WAY),
            "waiting": total(table.ADMISSION_QUEUE) + total(table.PREPARATION_QUEUE),
            "workers": total(table.WORKERS),
            "memory_bytes": total(table.MEMORY),
            "store_up": bool(total(table.STORE_UP)) if node.accounts else None,
            "tokens_per_second": _tokens_per_second(steps, at),
        },
        "hour": _hour(steps, at),
        "models": [_model(model, gauges) for model in catalog],
        "failures": [_failure(failure) for failure in read_failures(node.recent, _FAILURES)],
        "accounts": node.accounts,
        "playground": None if node.playground is None else [_surface(node, *each) for each in node.surfaces.items()],
    }


def path_of(surface: Surface) -> str:
    """Where ``surface`` creates responses."""
    (path,) = (endpoint.path for endpoint in surface.endpoints if endpoint.operation is Operation.CREATE_RESPONSE)
    return path


def _total(gauges: Gauges, metric: table.Metric) -> int:
    return round(sum(gauges.get(metric.name, {}).values()))


def _tokens_per_second(steps: Sequence[Step], at: float) -> float:
    """Over the step under way and the one before, as the first may have just begun."""
    tokens = sum(step[Count.OUTPUT_TOKENS] for step in steps[-2:])
    return round(tokens / (STEP_SECONDS + at % STEP_SECONDS), 1)


def _hour(steps: Sequence[Step], at: float) -> Json:
    """Series with a number for each half a minute, the oldest first.

    ``ends_at`` is the end of the last, in which there are the steps that are whole. Times are in seconds.
    """
    last = int(at // STEP_SECONDS)
    bins = list(_bins(steps[:-1], last))

    def count(of: Count) -> list[int]:
        return [bin[of] for bin, _ in bins]

    def a_second(of: Count, per: int = 1) -> list[float]:
        return [round(bin[of] / per / (parts * STEP_SECONDS), 2) for bin, parts in bins]

    def first_token(share: float) -> list[float | None]:
        times = [bin.first_token(share) for bin, _ in bins]
        return [None if seconds is None else round(seconds, 4) for seconds in times]

    return {
        "bin_seconds": _STEPS_OF_A_BIN * STEP_SECONDS,
        "ends_at": last * STEP_SECONDS,
        "streams": a_second(Count.STREAM_MS, per=1000),
        "output_tokens_per_second": a_second(Count.OUTPUT_TOKENS),
        "requests": count(Count.REQUESTS),
        "refused": count(Count.REFUSED),
        "failed": count(Count.FAILED),
        "first_token_p50": first_token(0.5),
        "first_token_p95": first_token(0.95),
    }


def _bins(whole: Sequence[Step], end: int) -> Iterator[tuple[Step, int]]:
    """The steps before the one of the number ``end``, several together, and how many.

    Bins begin where their time does, whoever asks when: so a point of a plot moves and does not change.
    """
    begin = end - len(whole)
    begin += -begin % _STEPS_OF_A_BIN
    for number in range(begin, end, _STEPS_OF_A_BIN):
        parts = whole[number - end :][:_STEPS_OF_A_BIN]
        yield together(parts), len(parts)


def _failure(failure: Failure) -> Json:
    return {**asdict(failure), "status": CODES[failure.code].status}


def _model(model: Served, gauges: Gauges) -> Json:
    """``ready`` is ``null`` where nobody asks whether it is."""
    common = {
        "name": model.name,
        "aliases": list(model.settings.aliases),
        "context_length": model.settings.context_length,
        "notes": list(model.notes),
    }
    if not isinstance(model, ServedModel):
        routes = [{"upstream": route.upstream.name, "model": route.model} for route in model.routes]
        return {**common, "kind": "native", "routes": routes, "ready": None}
    return {
        **common,
        "kind": "triton",
        "triton_model": model.settings.triton_model,
        "contract": None if model.contract is None else model.contract.name,
        "reasoning_format": _name_in(REASONING, model.style.reasoning),
        "tool_format": _name_in(FORMATS, model.style.calls),
        # In the eyes of all workers, where any has looked.
        "ready": bool(gauges.get(table.MODEL_READY.name, {}).get((model.name,), 0)),
        # In the eyes of the worker that answers.
        "outage": None if model.outage is None else model.outage.name,
    }


def _name_in(known: Mapping[str, object], one: object) -> str | None:
    """What ``one`` is called; markers of a model's own have no name."""
    if one is None:
        return None
    return next((name for name, other in known.items() if other is one), "own markers")


def _surface(node: Node, name: str, surface: Surface) -> Json:
    return {"name": name, "models": list(node.catalog().names(surface).listed(""))}
