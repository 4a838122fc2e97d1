"""The simulation of a node: what it says where one can tell by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.simulation import Cost, Machine, simulate

MACHINE = Machine(cores=4, envoys=2, workers=2, envoy=Cost(30e-6, 5e-6), worker=Cost(20e-6, 10e-6))


@pytest.mark.parametrize(("tunnel", "passes"), [(False, 2), (True, 3)])
def test_a_lonely_stream_waits_for_the_work_alone(tunnel: bool, passes: int) -> None:
    outcome = simulate(replace(MACHINE, tunnel=tunnel), streams=1, rate=10, seconds=2)
    assert outcome.envoy == pytest.approx(passes * 35e-6)
    assert outcome.worker == pytest.approx(30e-6)
    assert (outcome.lag_p50, outcome.lag_p99) == pytest.approx((passes * 35e-6 + 30e-6,) * 2)
    assert outcome.utilisation == pytest.approx(20 * outcome.lag_p50 / (2 * 4))


def test_a_token_costs_less_the_more_there_are() -> None:
    few, many = (simulate(MACHINE, streams, rate=20, seconds=2) for streams in (20, 1500))
    assert many.envoy < few.envoy
    assert many.worker < few.worker
    assert many.envoy >= 2 * 5e-6
    assert few.utilisation < many.utilisation < 1
    assert few.lag_p99 < many.lag_p99 < 0.005


def test_streams_that_ask_for_more_than_there_is_fall_behind() -> None:
    outcome = simulate(MACHINE, streams=8000, rate=50, seconds=1)
    assert outcome.utilisation > 1
    assert outcome.lag_p99 > 0.1


def test_a_single_core_is_shared() -> None:
    lonely, shared = (simulate(replace(MACHINE, cores=cores), 200, rate=20, seconds=2) for cores in (4, 1))
    assert shared.lag_p99 > lonely.lag_p99
    assert shared.utilisation > 2 * lonely.utilisation
