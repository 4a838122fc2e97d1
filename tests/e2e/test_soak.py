"""A few thousand mixed requests leave nothing behind: no session, no socket, no memory that grows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stack.local import LocalStack
from tests.e2e.client import eventually
from tests.soak import counts
from tests.soak.kinds import ENVOY_SETTINGS, KINDS, MODELS, choices
from tests.soak.soak import soak

pytestmark = pytest.mark.timeout(600)

REQUESTS = 1500


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with LocalStack(tmp_path_factory.mktemp("soak"), models=MODELS, envoy_settings=ENVOY_SETTINGS) as stack:
        yield stack


async def test_a_soak_ends_with_the_counts_it_began_with(soaked: LocalStack) -> None:
    await soak(soaked, KINDS, choices(KINDS, 300, seed=1))
    await eventually(lambda: not any(counts.of_envoy(soaked).values()), 60)
    # Gauges are as old as their last sample.
    await eventually(lambda: not counts.of_sidecar(soaked)["responses_requests_in_flight"], 60)
    before, files_before, memory_before = (
        counts.of_sidecar(soaked),
        counts.files_of_workers(soaked),
        counts.memory_of_workers(soaked),
    )

    outcomes = await soak(soaked, KINDS, choices(KINDS, REQUESTS, seed=2))

    assert not outcomes.other
    assert outcomes.well.total() == REQUESTS
    assert set(outcomes.well) == set(KINDS)
    await eventually(lambda: not any(counts.of_envoy(soaked).values()), 60)
    await eventually(lambda: counts.files_of_workers(soaked) <= files_before, 60)
    await eventually(lambda: counts.of_sidecar(soaked) == before, 60)
    assert counts.memory_of_workers(soaked) - memory_before < 20 * 1024

    soaked.sidecar.process.stop()
    drains = [line for line in soaked.sidecar.process.log.read_text().splitlines() if "draining" in line]
    assert len(drains) == soaked.workers
    assert all("draining 0 sessions" in line for line in drains)
