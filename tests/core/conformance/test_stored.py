"""What ``verify`` says of an endpoint's stored responses: nothing of sound ones, and the right rule of the others."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from conformance import Answer, NoAnswerError, Result
from conformance.stored import STORED, stored_results
from tests.core.conformance.answers import refused, whole
from tests.core.conformance.shelf import Shelf
from tests.core.conformance.stored_faults import STORED_FAULTS
from tests.core.conformance.streams import Json, message

NAMES = [probe.name for probe in STORED]


def results(shelf: Shelf, answering: Callable[[Json], Answer] = lambda asked: whole(message(0, "x"))) -> list[Result]:
    def send(method: str, path: str, body: bytes | None) -> Answer:
        if body is None:
            return shelf.look(method, path.removeprefix("/"))
        asked = json.loads(body)
        return shelf.create(asked, answering(asked))

    return list(stored_results(send, "m"))


def test_sound_ones_have_no_violation_and_nothing_is_left_behind() -> None:
    shelf = Shelf()
    found = results(shelf)
    assert [(result.probe, result.outcome, result.violations) for result in found] == [
        (name, "ok", []) for name in NAMES
    ]
    assert shelf.kept == {}


@pytest.mark.parametrize(("kind", "places"), STORED_FAULTS)
def test_a_fault_is_found_where_it_is(kind: type[Shelf], places: dict[str, list[str]]) -> None:
    found = [(violation.rule, result.probe) for result in results(kind()) for violation in result.violations]
    assert set(found) == {(rule, probe) for rule, probes in places.items() for probe in probes}


@pytest.mark.parametrize("says", [refused(400, "unsupported_parameter", "store"), whole(message(0, "x"), store=False)])
def test_an_endpoint_that_stores_nothing_is_asked_no_more(says: Answer) -> None:
    class Stores(Shelf):
        def create(self, asked: Json, answered: Answer) -> Answer:
            return answered

    (result,) = results(Stores(), lambda asked: says)
    assert (result.probe, result.outcome) == (NAMES[0], "not supported")


def test_without_a_response_nothing_more_is_tried() -> None:
    def answering(asked: Json) -> Answer:
        raise NoAnswerError("no answer")

    first, *others = results(Shelf(), answering)
    assert (first.outcome, {result.outcome for result in others}) == ("failed", {"not tried"})
    assert [first.probe, *(result.probe for result in others)] == NAMES


def test_without_a_second_turn_the_rest_is_tried() -> None:
    outcomes = {
        result.probe: result.outcome
        for result in results(
            Shelf(), lambda asked: refused(500) if "previous_response_id" in asked else whole(message(0, "x"))
        )
    }
    assert [name for name, outcome in outcomes.items() if outcome != "ok"] == [NAMES[3], NAMES[4], NAMES[7]]
    assert outcomes[NAMES[4]] == "not tried"
