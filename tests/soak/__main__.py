"""``./dev soak``: a long soak on a stack of its own, with faults, and what is left of it."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from stack.local import LocalStack
from stack.paths import ROOT
from stack.process import StackError
from stack.upstreams import NATIVE_SCRIPTED, ScriptedUpstream
from tests.soak import counts
from tests.soak.faults import FAULTS
from tests.soak.kinds import ENVOY_SETTINGS, KINDS, MODELS, NATIVE, choices
from tests.soak.soak import Outcomes, soak

_DIRECTORY = ROOT / ".local" / "soak"
"""Where the logs of the latest run are."""
_WARM_UP = 2000
_SETTLED_SECONDS = 120
_STAY = ("responses_event_loop_tasks", "starts of workers", "files of slots")
"""What a stack has of while nothing is under way."""
_MOST_GROWTH = 20 * 1024
"""KiB of a process's memory that are no leak: what a longer run does not grow by any more."""
_MORE = {
    "responses_event_loop_tasks": 8,
    "files of the workers": 8,
    "threads of the workers": 8,
    "files of Envoy": 16,
    "files of Triton": 16,
}
"""What may be more when all is over, such as connections kept for the next request, and threads that a pool starts when
it is busy. What leaks is more by the next thousand requests, and exceeds this in a long run."""


def main(
    requests: Annotated[int, typer.Option(min=1, help="How many requests.")] = 50_000,
    faults: Annotated[
        int, typer.Option(min=0, help="How often something is killed: a worker, Triton and Envoy in turn.")
    ] = 30,
    seed: Annotated[int, typer.Option(help="Of the choice of requests.")] = 1,
) -> None:
    """Send mixed requests to real parts, kill some now and then, and look at what is left of it.

    Ends with status 1 where a request ended as it must not, or something is left. The logs are in .local/soak.
    """
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    upstream = ScriptedUpstream(_DIRECTORY / "upstream")
    try:
        with LocalStack(
            _DIRECTORY / "stack",
            models=MODELS,
            native_models=[NATIVE_SCRIPTED],
            upstreams=[upstream],
            envoy_settings=ENVOY_SETTINGS,
            progress=print,
        ) as stack:
            sys.exit(asyncio.run(_run(stack, requests, faults, seed)))
    finally:
        upstream.process.stop()


async def _run(stack: LocalStack, requests: int, faults: int, seed: int) -> int:
    kinds = {**KINDS, **NATIVE}
    warm_up = min(_WARM_UP, requests)
    print(f"Warming up with {warm_up} requests")
    # Each part is replaced once: what is compared is then of the same age.
    _tell(await soak(stack, kinds, choices(kinds, warm_up, seed), faults=min(faults, len(FAULTS))))
    before = await _settled(stack)
    memory_before = counts.memory(stack)
    print(f"Sending {requests} requests with {faults} faults")
    outcomes = await soak(stack, kinds, choices(kinds, requests, seed + 1), faults=faults)
    after = await _settled(stack)
    memory_after = counts.memory(stack)
    _tell(outcomes)
    before["starts of workers"] += outcomes.faults["worker killed"]
    left = [
        *_compare("", before, after, _is_left),
        *_compare("memory of ", memory_before, memory_after, _has_grown),
    ]
    for name in left:
        print(f"left: {name}")
    return 1 if outcomes.other or left else 0


async def _settled(stack: LocalStack) -> dict[str, int]:
    """The counts, once nothing is under way.

    Raises:
        StackError: something stays.
    """

    def under_way() -> dict[str, int]:
        sidecar, envoy = counts.of_sidecar(stack), counts.of_envoy(stack)
        return {name: number for name, number in {**sidecar, **envoy}.items() if number and name not in _STAY}

    deadline = time.monotonic() + _SETTLED_SECONDS
    while left := under_way():
        if time.monotonic() > deadline:
            raise StackError(f"does not end: {left}")
        await asyncio.sleep(0.2)
    return {**counts.of_sidecar(stack), **counts.of_envoy(stack), **counts.of_processes(stack)}


def _is_left(name: str, before: int, after: int) -> bool:
    return after > before + _MORE.get(name, 0)


def _has_grown(name: str, before: int, after: int) -> bool:
    """Of what was killed there is a new one, which tells of the requests since then."""
    return after - before > _MOST_GROWTH


def _compare(
    prefix: str, before: Mapping[str, int], after: Mapping[str, int], is_left: Callable[[str, int, int], bool]
) -> list[str]:
    """Print both; the names of what is left."""
    for name in before:
        print(f"| {prefix}{name} | {before[name]:,} | {after[name]:,} |")
    return [name for name in before if is_left(name, before[name], after[name])]


def _tell(outcomes: Outcomes) -> None:
    print(f"{outcomes.total} requests in {outcomes.seconds:.0f} s; faults: {dict(outcomes.faults)}")
    print(f"ended as they must: {outcomes.well.total()}; broken off by faults: {outcomes.broken.total()}")
    ends: dict[int | str | None, int] = {}
    for (_, outcome), times in outcomes.broken.items():
        ends[outcome] = ends.get(outcome, 0) + times
    print(f"how those were broken off: {ends}")
    for (name, outcome), times in outcomes.other.items():
        print(f"{name} ended with {outcome}, {times} times")


if __name__ == "__main__":
    typer.run(main)
