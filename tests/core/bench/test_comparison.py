"""What rounds come to: ratios of the same round, their spread, keeping up, and when a run is no result."""

import json
from dataclasses import replace

import pytest

from bench.candidates import ECHO, ENVOY, PEER, STRAIGHT, WIRES, candidates
from bench.comparison import Results, added, disturbances, keeps_up, ratio, to_json
from bench.figures import Figures
from bench.loads import main_loads, one_token, paced
from bench.measure import Measurement
from bench.report import tables

FIGURES = Figures(requests=64, failures={}, ttft_p50=52, ttft_p99=60, latency_p50=0.3, latency_p99=2.0, gap_p99=22.0)
LOAD = paced(64, 50, seconds=2)


def measured(us: float, others: float = 0.0, **figures: object) -> Measurement:
    return Measurement(replace(FIGURES, **figures), {"envoy": us * 0.75, "sidecar": us * 0.25}, others)  # type: ignore[arg-type]


def rounds(*us: float, **more: float) -> list[Measurement]:
    return [measured(one, **more) for one in us]


def results(**wires: list[Measurement]) -> Results:
    straight = [replace(one, cpu_us={}) for one in rounds(0, 0, 0, latency_p50=0.1)]
    others = {STRAIGHT: straight, ENVOY: rounds(50, 50, 50), PEER: rounds(100, 200, 100)}
    return {"64x50": {**others, **wires}}


def test_a_ratio_is_to_the_same_round_of_the_peer() -> None:
    found = ratio(rounds(150, 320, 130), rounds(100, 200, 100))
    assert (found.median, found.low, found.high) == pytest.approx((1.5, 1.3, 1.6))


def test_what_is_added_is_the_median_of_the_rounds_differences() -> None:
    ours = [measured(1, latency_p50=value) for value in (1.0, 9.0, 3.0)]
    straight = [measured(1, latency_p50=value) for value in (0.5, 1.0, 1.0)]
    assert added(lambda seen: seen.latency_p50, ours, straight) == pytest.approx(2.0)


@pytest.mark.parametrize(("gap", "failures", "expected"), [(29.9, {}, True), (30.0, {}, False), (20, {"x": 1}, False)])
def test_keeping_up_is_short_gaps_and_no_failure(gap: float, failures: dict[str, int], expected: bool) -> None:
    assert keeps_up(LOAD, [measured(1, gap_p99=gap, failures=failures)] * 3) is expected


def test_one_round_with_long_gaps_is_not_the_rule() -> None:
    assert keeps_up(LOAD, [measured(1, gap_p99=gap) for gap in (21.0, 90.0, 22.0)])


def test_a_quiet_run_whose_rounds_agree_is_a_result() -> None:
    assert disturbances(results(tunnel=rounds(150, 310, 160))) == []


def test_a_run_beside_others_is_no_result() -> None:
    (reason,) = disturbances(results(tunnel=rounds(150, 300, 150, others=0.5)))
    assert reason == "64x50: others kept 0.5 processors busy."


def test_one_disturbed_round_of_three_is_left_to_the_median() -> None:
    tunnel = [*rounds(150, 300), *rounds(150, others=0.9)]
    assert disturbances(results(tunnel=tunnel)) == []


def test_rounds_that_disagree_are_no_result() -> None:
    (reason,) = disturbances(results(direct=rounds(150, 300, 240)))
    assert reason == "64x50, direct: the ratio was 1.50 in one round and 2.40 in another."


def test_json_names_every_load_and_wire() -> None:
    loads = main_loads(1.5)
    (by_name,) = results(**{wire: rounds(150, 300, 150) for wire in WIRES}).values()
    found = json.loads(json.dumps(to_json(loads, {load.name: by_name for load in loads})))
    assert found["disturbed"] is False
    assert list(found["loads"]) == ["64x50", "in_step", "256x40", "one_token"]
    for load in found["loads"].values():
        assert load["peer_us"] == 100
        assert load["envoy_us"] == 50
        assert set(load) == {"peer_us", "envoy_us", *WIRES}
        for wire in WIRES:
            assert load[wire] == {
                "ratio": 1.5,
                "us": 150,
                "sidecar_us": 37.5,
                "added_p50_ms": 0.2,
                "keeps_up": True,
            }


def test_a_disturbed_run_says_so_in_its_json() -> None:
    assert to_json([LOAD], results(tunnel=rounds(150, 300, 150, others=2.0)))["disturbed"] is True


def test_tables_have_a_line_for_each_candidate() -> None:
    text = tables([LOAD], results(tunnel=rounds(150, 300, 150)))
    title, _, head, _, *lines = text.splitlines()
    assert title == "**`64x50`**: 64 streams of 50 tokens per second; µs per token, a token every 20 ms"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]
    assert [line[0] for line in cells[1:]] == [STRAIGHT, ENVOY, PEER, "tunnel"]
    tunnel = dict(zip(cells[0], cells[4], strict=True))
    assert tunnel["ratio to the peer"] == "1.50 (1.50–1.50)"
    assert (tunnel["µs"], tunnel["Envoy µs"], tunnel["the other µs"], tunnel["keeps up"]) == ("150", "112", "38", "yes")


def test_streams_are_measured_while_all_of_them_run() -> None:
    begin, end = LOAD.steady
    assert 0.4 < begin < end <= 2.05
    assert one_token(1.0).steady[1] == 1.0


def test_every_wire_and_transport_takes_part_in_a_full_run() -> None:
    quick, full = (list(candidates(full=every)) for every in (False, True))
    assert quick[:3] == [STRAIGHT, ENVOY, PEER]
    assert set(quick) >= set(WIRES)
    assert set(full) - set(quick) == {ECHO, *(f"{wire}, grpc_aio" for wire in WIRES)}
