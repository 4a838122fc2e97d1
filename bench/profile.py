"""``./dev bench --profile``: where the time of a token goes, by part and, within a worker, by Python function."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.candidates import PEER, WIRES, candidates, running
from bench.cpu import context_switches, cpu_seconds, family, system_seconds
from bench.loads import Load, paced
from bench.measure import Bench, sleep_until
from bench.nodes import Node
from bench.report import markdown
from bench.upstream import Upstream
from stack.process import StackError, reason

SECONDS = 5.0
FUNCTIONS = 25
"""How many functions are listed."""


@dataclass(frozen=True)
class Counters:
    """What a part has used so far: seconds of processor time, of those the system's, and context switches."""

    seconds: float
    system: float
    switches: int


def measure(run_dir: Path, upstream: Upstream, progress: Callable[[str], None]) -> str:
    """Profile the peer and every wire at 64 streams of 50 tokens per second; tables.

    Raises:
        StackError: a part could not be had or started, or the profiler failed.
    """
    profiler = peers.install("py-spy", progress) / "py-spy"
    bench, load = Bench(upstream, progress), paced(64, 50, SECONDS)
    chosen = {name: start for name, start in candidates(full=False).items() if name in (PEER, *WIRES)}
    lines, functions = [_TITLES], []
    with running(chosen, run_dir, upstream, progress) as started:
        for name, candidate in started.items():
            progress(f"Counting: {name}")
            lines += [[name, *line] for line in _count(bench, candidate.node, load)]
            if candidate.node.workers:
                progress(f"Sampling the workers: {name}")
                stacks = _sample(bench, candidate.node, load, profiler, run_dir)
                functions.append(f"The workers, {name}:\n\n{function_table(stacks)}")
    return "\n\n".join([markdown(lines), *functions])


_TITLES = ["", "part", "user µs/token", "system µs/token", "system calls/token", "context switches/token"]


def _count(bench: Bench, node: Node, load: Load) -> list[list[str]]:
    play = bench.play(node, load)
    begin, end = (play.start + moment for moment in load.steady)
    sleep_until(begin)
    pids = {part: family([pid]) for part, pid in node.parts.items()}
    before, started = {part: _counters(pids[part]) for part in pids}, time.monotonic()
    calls = _system_calls(pids, end - started)
    after, ended = {part: _counters(pids[part]) for part in pids}, time.monotonic()
    arrivals = [arrival for one in play.observations() for arrival in one.arrivals]
    tokens = sum(started <= arrival <= ended for arrival in arrivals)
    return [
        [
            part,
            f"{(_user(after[part]) - _user(before[part])) / tokens * 1e6:.0f}",
            f"{(after[part].system - before[part].system) / tokens * 1e6:.0f}",
            f"{calls[part] / tokens:.2f}" if part in calls else "-",
            f"{(after[part].switches - before[part].switches) / tokens:.2f}",
        ]
        for part in pids
    ]


def _counters(pids: set[int]) -> Counters:
    return Counters(cpu_seconds(pids), system_seconds(pids), context_switches(pids))


def _user(counters: Counters) -> float:
    return counters.seconds - counters.system


def _system_calls(pids: Mapping[str, set[int]], seconds: float) -> dict[str, int]:
    """The parts' system calls in the next seconds, by ``perf`` where there is one that may count them."""
    perf = shutil.which("perf")
    if perf is None:
        time.sleep(seconds)
        return {}
    arguments = ["stat", "-x,", "-e", "raw_syscalls:sys_enter"]
    counting = {
        part: subprocess.Popen(
            [perf, *arguments, "-p", ",".join(map(str, of_part)), "--", "sleep", str(seconds)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for part, of_part in pids.items()
    }
    counts = {part: process.communicate()[1].split(",")[0] for part, process in counting.items()}
    return {part: int(count) for part, count in counts.items() if count.isdigit()}


def _sample(bench: Bench, node: Node, load: Load, profiler: Path, run_dir: Path) -> str:
    """The stacks of all workers while all streams run, collapsed, with how often each was seen."""
    play = bench.play(node, load)
    sleep_until(play.start + load.steady[0])
    # A profiler needs a second to begin.
    arguments = ["--duration", str(int(load.steady[1] - load.steady[0] - 1)), "--rate", "250", "--format", "raw"]
    stacks = [run_dir / f"stacks-{pid}.txt" for pid in node.workers]
    profilers = [
        subprocess.Popen(
            [profiler, "record", "--pid", str(pid), *arguments, "--output", path],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for pid, path in zip(node.workers, stacks, strict=True)
    ]
    play.observations()
    for process in profilers:
        errors = process.communicate()[1]
        if process.returncode:
            raise StackError(f"py-spy could not look into a worker: {reason(errors)}")
    return "".join(path.read_text() for path in stacks)


_FRAME = re.compile(r"(?P<function>.+) \((?P<file>[^:)]+)(:\d+)?\)")


def function_table(stacks: str) -> str:
    """The functions of collapsed stacks (``outer;inner 12`` a line) by their share of the samples, the largest first.

    ``self`` is the share in which a function was the innermost, with all of C below it; ``whole`` that in which it was
    anywhere. What the event loop and the kernel take under it stands at ``Runner.run``.
    """
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [_without_line(frame) for frame in stack.split(";")]
        own[frames[-1]] += int(count)
        whole.update(dict.fromkeys(frames, int(count)))
    samples = sum(own.values())
    lines = [
        [f"{own[name] / samples:.1%}", f"{whole[name] / samples:.1%}", name] for name, _ in own.most_common(FUNCTIONS)
    ]
    return markdown([["self", "whole", "function"], *lines])


def _without_line(frame: str) -> str:
    found = _FRAME.fullmatch(frame)
    return f"{found['function']} ({found['file']})" if found else frame
