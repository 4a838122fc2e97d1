"""Whatever a client calls a schema, and whatever answer a model gives by it: it is told what becomes of it, in time.

What could take too long runs in a process that a limit on its CPU time ends, so that such a fault fails a test and does
not halt the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress

import pytest

from sidecar.guidance.validation import MOST_STEPS, Check, UndecidedError
from sidecar.responses.json_schema import MAX_BYTES
from stack.paths import ROOT
from tests.hostile.schemas import HOSTILE, size
from tests.hostile.work import MOST_CALLS, calls, look_at

REFUSED = {
    "a pattern nested deeply",
    "alternatives of alternatives",
    "anchors with long names",
    "many patterns for names",
    "more of the smallest schemas than are taken",
    "objects each with patterns for names",
    "patterns that meet through references",
    "patterns that one text has to match",
    *(name for name in HOSTILE if name.startswith("a chain of references")),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[str]]:
    """What became of each input, as far as the process came."""
    command = [sys.executable, "-m", "tests.hostile.work"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 0, f"{lines[-1][0]}: {ended.returncode} {ended.stderr[-2000:]}"
    return {line[0]: line[1] for line in lines if len(line) > 1}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_comes_to_an_end(outcomes: dict[str, list[str]], name: str) -> None:
    in_the_text, *_, unguided = outcomes[name]
    assert ("cannot be guided" in in_the_text) or in_the_text.startswith("text ")
    assert name not in REFUSED or "cannot be guided" in in_the_text
    # What nothing has to keep to is nobody's fault.
    assert unguided == "text True, arguments True"


def test_each_is_one_that_a_request_may_hold() -> None:
    assert {name: size(schema) for name, (schema, _) in HOSTILE.items() if size(schema) > MAX_BYTES} == {}


@pytest.mark.parametrize("name", HOSTILE)
def test_looking_at_a_schema_takes_work_in_proportion(name: str) -> None:
    schema, _ = HOSTILE[name]
    assert calls(lambda: look_at(schema)) <= MOST_CALLS * (size(schema) + 100)


def test_beyond_what_is_taken_more_schemas_cost_little_more() -> None:
    most, _ = HOSTILE["as many of the smallest schemas as are taken"]
    more, _ = HOSTILE["more of the smallest schemas than are taken"]
    assert calls(lambda: look_at(more)) <= calls(lambda: look_at(most))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_check_takes_no_more_than_its_steps(name: str) -> None:
    schema, answer = HOSTILE[name]
    try:
        value = json.loads(answer)
    except RecursionError:
        return

    def check() -> None:
        with suppress(UndecidedError, RecursionError, KeyError):
            Check(schema).admits(schema, value)

    assert calls(check) <= 3 * MOST_STEPS
