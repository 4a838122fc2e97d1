"""What comes of the requests in ``tests/data`` is what lies beside them, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.stream import check_stream
from sidecar.surfaces import SURFACES
from tests.core import kit
from tests.core.goldens.cases import CASES, Played, expected_files, given, kept_files

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
STREAMS = [path for case in CASES for path in sorted(case.glob("*.sse"))]


@each_case
def test_a_request_comes_to_what_lies_beside_it(case: Path) -> None:
    kept, expected = kept_files(case), expected_files(case)
    renew = "./dev goldens writes them anew"
    assert kept.keys() == expected.keys(), renew
    for name in kept:
        assert kept[name] == expected[name], f"{case.name}/{name}: {renew}"


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_stream_keeps_to_the_protocol(path: Path) -> None:
    _, violations = check_stream(path.read_bytes())
    assert not violations


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_stream_is_the_same_when_triton_s_answer_comes_at_once(path: Path) -> None:
    _, surface, contract, _ = path.name.split(".")
    request, generation = given(path.parent)
    played = Played(surface, contract, {**request, "stream": True})
    played.feed(contract, generation, at_once=True)
    assert kit.sent(played.commands) == path.read_bytes()


def test_every_surface_and_every_contract_has_a_case() -> None:
    told = {tuple(path.name.split(".")[1:3]) for path in STREAMS}
    contracts = {"token_level", "ensemble", "llm_api", "vllm"}
    assert told == {(surface, contract) for surface in SURFACES for contract in contracts}
