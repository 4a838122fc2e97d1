"""What a schema and an answer cost, in a process of its own that is ended when they cost too much.

``python -m tests.hostile.work`` takes each that :data:`HOSTILE` names.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from sidecar.generation.formats import FORMATS
from sidecar.guidance.dialects import dialect_of
from sidecar.guidance.limits import excess
from sidecar.guidance.schemas import schema_fault
from sidecar.guidance.self_contained import OverlargeError, UnresolvableError, self_contained
from sidecar.guidance.shapes import shape_fault
from sidecar.guidance.validation import fits
from sidecar.responses.errors import ApiError
from tests.core.guidance.requests import checked_guidance, json_schema, request, tool
from tests.hostile.schemas import HOSTILE

MOST_SECONDS = 10
"""Seconds of CPU time after which a process is ended: several times what the dearest input takes."""
MOST_MEMORY = 2 << 30
MOST_CALLS = 12
"""Calls of Python functions that a byte of a schema costs at most before it is compiled; each ``{},`` costs 30."""
FRAMING = FORMATS["hermes"].framing


def perform(schema: Any, answer: str) -> list[str]:
    """What becomes of ``schema`` wherever a request may hold it, and of ``answer`` by it."""
    bodies: list[dict[str, Any]] = [
        {"text": json_schema(schema)},
        {"tools": [tool("f", schema)], "tool_choice": "required"},
        {"tools": [tool("f", schema, strict=True)]},
        {"tools": [tool("f", schema)]},
    ]
    outcomes = []
    for body in bodies:
        try:
            asked = request(**body)
            guidance = checked_guidance(asked, framing=FRAMING, call_guide_form="ebnf_grammar")
        except ApiError as refused:
            assert refused.status == 400
            assert refused.param
            outcomes.append(refused.message)
            continue
        outcomes.append(f"text {guidance.check_text(answer)}, arguments {guidance.check_arguments('f', answer)}")
    if schema_fault(json.dumps(schema)) is None:
        # An engine refuses many of them: the check has to bear them all the same.
        with suppress(UnresolvableError, OverlargeError):
            fits(answer, self_contained(schema))
    return outcomes


def look_at(schema: Any) -> None:
    """All that is done with ``schema`` before it is compiled."""
    if shape_fault(schema, dialect_of(schema)) is None:
        with suppress(UnresolvableError, OverlargeError):
            excess(self_contained(schema))


def calls(task: Callable[[], object]) -> int:
    """How many Python functions ``task`` calls, and how often it enters generators."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
    return count


def limit() -> None:
    """Let this process use no more than the limits from here on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 1 + MOST_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.RLIM_INFINITY))


def in_a_thread(task: Callable[[], None]) -> None:
    """Perform ``task`` where a worker would: a thread's stack is not larger than a process's."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            task()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def main() -> None:
    """Perform each of the named inputs; the last line printed is the one that ended the process, if one did."""
    for name, (schema, answer) in HOSTILE.items():
        print(json.dumps([name]), flush=True)
        limit()
        before = time.process_time()
        outcomes = perform(schema, answer)
        print(json.dumps([name, outcomes, round(time.process_time() - before, 3)]), flush=True)


if __name__ == "__main__":
    in_a_thread(main)
    sys.exit(0)
