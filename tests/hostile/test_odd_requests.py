"""Thousands of odd requests to the real parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.local import LocalStack
from tests.e2e.client import eventually
from tests.hostile.honest import resident, served
from tests.hostile.odd import NO_ANSWER, send_odd_requests
from tests.hostile.stacks import besieged

pytestmark = pytest.mark.timeout(300)
"""A stack takes a while to start, and thousands of requests take a minute."""

ODD_REQUESTS = 7500
MIB = 2**20


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with besieged(tmp_path_factory.mktemp("odd")) as stack:
        yield stack


async def test_thousands_of_odd_requests_are_answered_and_leave_nothing_behind(stack: LocalStack) -> None:
    await send_odd_requests(stack, 500, seed=1)
    await at_rest(stack)
    before, memory_before = open_files(stack), resident(workers := stack.sidecar.worker_pids())

    statuses = await send_odd_requests(stack, ODD_REQUESTS, seed=2)

    assert statuses.total() == ODD_REQUESTS
    assert {status for status in statuses if status >= 500} <= {503}
    assert {200, 400, 401, 404, 405, 415, 431} <= statuses.keys()
    assert statuses[NO_ANSWER] < ODD_REQUESTS / 8
    await served(stack)
    await at_rest(stack)
    assert stack.sidecar.worker_pids() == workers
    assert open_files(stack) <= before + 8
    assert resident(workers) - memory_before < 64 * MIB
    assert "Traceback" not in stack.sidecar.process.log.read_text()


async def at_rest(stack: LocalStack) -> None:
    await eventually(lambda: not stack.envoy.stats("http.ingress")["http.ingress.downstream_rq_active"], 30)


def open_files(stack: LocalStack) -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in stack.sidecar.worker_pids())
