"""What ``verify`` says of whole HTTP answers, and that every rule of it is put to the test."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.client import Answer
from conformance.probes import METADATA, PROBES, Probe, check_answer
from conformance.rules import RULES
from sidecar.responses.errors import ApiError
from tests.core.conformance.faults import BYTE_FAULTS, CUT, FAULTS, OTHER_FAULTS, WHOLE
from tests.core.conformance.streams import USAGE, encode, message, response, stream

STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-request-id": "r"}
DOCUMENT = {"content-type": "application/json", "x-request-id": "r"}
ERROR_BODY = ApiError("invalid_request", "No.").reply().body
STREAMED = Probe("streamed", {"stream": True})
ASKED_WHOLE = Probe("whole", {})
REFUSED = Probe("refused", {}, statuses=(400,))
LIMITED = next(probe for probe in PROBES if probe.name == "an output limit, whole")
ECHOED = next(probe for probe in PROBES if probe.name == "metadata")
OUTPUT = [events[-1]["item"] for events in WHOLE]


def document(status: str = "completed", **changes: Any) -> list[bytes]:
    return [json.dumps(response(status, OUTPUT, **changes)).encode()]


SOUND_ANSWERS = [
    (STREAMED, Answer(200, STREAM, [encode(CUT)])),
    (STREAMED, Answer(200, STREAM | {"content-type": "text/event-stream"}, [encode(CUT[:2]), encode(CUT[2:])])),
    (ASKED_WHOLE, Answer(200, DOCUMENT, document())),
    (REFUSED, Answer(400, DOCUMENT, [ERROR_BODY])),
    (LIMITED, Answer(200, DOCUMENT, document())),
    (ECHOED, Answer(200, STREAM, [encode(stream(message(0, "x"), metadata=METADATA))])),
]


@pytest.mark.parametrize(("probe", "answer"), SOUND_ANSWERS)
def test_a_sound_answer_has_no_violation(probe: Probe, answer: Answer) -> None:
    assert check_answer(probe, answer)[1] == []


ANSWER_FAULTS = [
    ("http-status", ASKED_WHOLE, Answer(400, DOCUMENT, [ERROR_BODY])),
    ("http-status", REFUSED, Answer(200, DOCUMENT, document())),
    ("http-complete", ASKED_WHOLE, Answer(200, DOCUMENT, document(), "broken off")),
    ("content-type", ASKED_WHOLE, Answer(200, STREAM, document())),
    ("content-type", STREAMED, Answer(200, DOCUMENT, [encode(CUT)])),
    ("content-type", REFUSED, Answer(400, {"x-request-id": "r"}, [ERROR_BODY])),
    (
        "content-type",
        STREAMED,
        Answer(200, STREAM | {"content-type": "text/event-stream; charset=latin-1"}, [encode(CUT)]),
    ),
    ("request-id", REFUSED, Answer(400, {"content-type": "application/json"}, [ERROR_BODY])),
    ("error-body", REFUSED, Answer(400, DOCUMENT, [b"no"])),
    ("response-shape", ASKED_WHOLE, Answer(200, DOCUMENT, [b"[]"])),
    ("response-status", ASKED_WHOLE, Answer(200, DOCUMENT, document("unheard of", completed_at=1, usage=USAGE))),
    ("metadata-echo", ECHOED, Answer(200, STREAM, [encode(CUT)])),
    (
        "output-limit",
        LIMITED,
        Answer(200, DOCUMENT, document(usage=USAGE | {"output_tokens": 17, "total_tokens": 24})),
    ),
    (
        "output-limit",
        LIMITED,
        Answer(200, DOCUMENT, document("incomplete", incomplete_details={"reason": "content_filter"})),
    ),
    ("sse-chunks", STREAMED, Answer(200, STREAM, [encode(CUT)[:50], encode(CUT)[50:]])),
]


@pytest.mark.parametrize(("rule", "probe", "answer"), ANSWER_FAULTS)
def test_a_faulty_answer_is_found_by_its_rule(rule: str, probe: Probe, answer: Answer) -> None:
    assert {violation.rule for violation in check_answer(probe, answer)[1]} == {rule}


def test_every_rule_is_shown_to_find_something() -> None:
    faults: list[Sequence[tuple[object, ...]]] = [
        FAULTS,
        OTHER_FAULTS,
        BYTE_FAULTS,
        ANSWER_FAULTS,
        [("sequence-number",)],
    ]
    found = {cell for table in faults for fault in table for cell in fault if isinstance(cell, str)}
    assert found >= RULES.keys()
