"""What ``verify`` says of whole HTTP answers, and that every rule of it is put to the test."""

from collections.abc import Sequence

import pytest

from conformance import RULES, Answer, Probe, check_answer
from tests.core.conformance.answers import DOCUMENT, answer, refused
from tests.core.conformance.faults import (
    ANSWER_FAULTS,
    ASKED_WHOLE,
    BYTE_FAULTS,
    DEMANDED,
    FAULTS,
    NO_MODEL,
    OTHER_FAULTS,
    SOUND_ANSWERS,
)
from tests.core.conformance.stored_faults import STORED_FAULTS


@pytest.mark.parametrize(("probe", "sound"), SOUND_ANSWERS)
def test_a_sound_answer_has_no_violation(probe: Probe, sound: Answer) -> None:
    assert check_answer(probe, sound).violations == []


@pytest.mark.parametrize(("rule", "probe", "faulty"), ANSWER_FAULTS)
def test_a_faulty_answer_is_found_by_its_rule(rule: str, probe: Probe, faulty: Answer) -> None:
    assert {violation.rule for violation in check_answer(probe, faulty).violations} == {rule}


def test_every_rule_is_shown_to_find_something() -> None:
    faults: list[Sequence[tuple[object, ...]]] = [
        FAULTS,
        OTHER_FAULTS,
        BYTE_FAULTS,
        ANSWER_FAULTS,
        [("sequence-number",)],
        [tuple(places) for _, places in STORED_FAULTS],
    ]
    found = {cell for table in faults for fault in table for cell in fault if isinstance(cell, str)}
    assert found >= RULES.keys()


@pytest.mark.parametrize(
    ("probe", "refusal", "words"),
    [
        (ASKED_WHOLE, refused(400), "the status is 400 instead of 200: No."),
        (
            NO_MODEL,
            answer(503, DOCUMENT, b'{"error": "busy"}'),
            'the status is 503 instead of 400 or 404: {"error": "busy"}',
        ),
        (
            ASKED_WHOLE,
            answer(500, DOCUMENT, b"a\x1b[31m\n\tb\xff"),
            "the status is 500 instead of 200: a\ufffd[31m b\ufffd",
        ),
        (ASKED_WHOLE, answer(500, DOCUMENT), "the status is 500 instead of 200"),
        (ASKED_WHOLE, answer(500, DOCUMENT, b"x" * 5000), f"the status is 500 instead of 200: {'x' * 199}…"),
    ],
)
def test_a_wrong_status_is_told_with_the_right_one_and_the_servers_words(
    probe: Probe, refusal: Answer, words: str
) -> None:
    assert words in [violation.message for violation in check_answer(probe, refusal).violations]


@pytest.mark.parametrize(
    ("probe", "refusal", "unsupported"),
    [
        (DEMANDED, refused(400, "unsupported_parameter", "tool_choice"), True),
        (DEMANDED, refused(400, "unsupported_parameter", "tools[0]"), True),
        (DEMANDED, refused(400, "unsupported_parameter", "toolsmith"), False),
        (DEMANDED, refused(400, "invalid_request", "tools"), False),
        (DEMANDED, refused(422, "unsupported_parameter", "tools"), False),
        (ASKED_WHOLE, refused(400, "unsupported_parameter"), False),
    ],
)
def test_what_an_endpoint_may_lack_is_not_supported(probe: Probe, refusal: Answer, unsupported: bool) -> None:
    verdict = check_answer(probe, refusal)
    assert (verdict.unsupported, verdict.violations == []) == (unsupported, unsupported)
    assert verdict.refusal == "No."
