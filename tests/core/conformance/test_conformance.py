"""The stream checker: sound streams pass, each planted fault is found by the rule that names it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.documents import check_error_body, check_response
from conformance.rules import RULES, Violation
from conformance.sse import ReceivedEvent
from conformance.stream import StreamChecker, check_stream
from sidecar.config.models import SurfaceSettings
from sidecar.responses.errors import CODES, ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.surfaces import SURFACES
from stack.paths import ROOT
from tests.core import kit
from tests.core.conformance.faults import BYTE_FAULTS, CUT, FAULTS, OTHER_FAULTS, WHOLE
from tests.core.conformance.mutations import Mutation, fresh
from tests.core.conformance.streams import Json, call, encode, error, message, numbered, reasoning, response, stream
from tests.core.splits import split_at


def written(pieces: list[bytes], failed_event: bool = False, **body: Any) -> bytes:
    """What the exchange writes for Triton's ``pieces``."""
    surface = replace(SURFACES["node"], settings=SurfaceSettings(failed_event=failed_event))
    return kit.sent(kit.play(pieces, of=kit.exchange(surface=surface), stream=True, **body)[1])


def written_item_by_item() -> bytes:
    """What the event writer makes of one item of each kind."""
    start = response("in_progress", [])
    writer = EventWriter(ResponseIds("0" * 26), start)
    pieces = [writer.start(), writer.open_reasoning(), writer.delta("Let me "), writer.delta("think.")]
    pieces += [writer.close("completed"), writer.open_message(), writer.delta("Grüße"), writer.close("completed")]
    for arguments in ('{"city":"Rom"}', "{}"):
        pieces += [writer.open_call("look"), *map(writer.delta, arguments), writer.close("completed")]
    return b"".join([*pieces, writer.finish(response("completed", writer.output))])


SOUND = {
    "written: all kinds of items": written_item_by_item(),
    "written: a text": written([kit.text("Grüße "), kit.text("an alle\u2028👋"), kit.final()]),
    "written: nothing generated": written([kit.response([kit.END]), kit.final()]),
    "written: cut": written([kit.text("abc"), kit.final()], max_output_tokens=3),
    "written: a failure": written([kit.text("some"), kit.failure("gone")]),
    "written: a failure, told twice": written([kit.text("some"), kit.failure("gone")], failed_event=True),
    "all kinds of items": encode(stream(*WHOLE)),
    "a refusal": encode(stream(message(0, "I ", "won't.", kind="refusal"))),
    "a summary and no reasoning text": encode(stream(reasoning(0, summary=["In ", "short"]), message(1, "x"))),
    "custom tools": encode(stream(call(0, "a", "b", kind="custom_tool_call"), call(1, kind="custom_tool_call"))),
    "cut": encode(CUT),
    "cut arguments": encode(stream(message(0, "x"), call(1, '{"a', status="incomplete"), end="incomplete")),
    "cut reasoning": encode(stream(reasoning(0, "Let me", status="incomplete"), end="incomplete")),
    "an error in the middle": encode(numbered([*stream(*WHOLE)[:6], error()])),
    "an error, then failed": encode(numbered([*stream(*WHOLE)[:6], error(), *stream(end="failed")[-1:]])),
    "CRLF": encode(stream(*WHOLE)).replace(b"\n", b"\r\n"),
    "CR": encode(stream(*WHOLE)).replace(b"\n", b"\r"),
    "comments between events": encode(stream(*WHOLE)).replace(b"\n\n", b"\n\n: keep-alive\n\n"),
    "a keep-alive event": encode(numbered([*CUT[:4], {"type": "keepalive"}, *CUT[4:]])),
    "a hosted tool's event": encode(numbered([*CUT[:4], {"type": "response.web_search_call.searching"}, *CUT[4:]])),
}


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_a_sound_stream_has_no_violation(sound: bytes) -> None:
    events, violations = check_stream(sound)
    assert not violations
    assert len(events) == sound.count(b"event:")


@pytest.mark.parametrize(("rule", "mutate"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_planted_fault_is_found_by_its_rule(rule: str, mutate: Mutation) -> None:
    events = fresh(stream(*WHOLE))
    mutate(events)
    _, violations = check_stream(encode(numbered(events)))
    assert {violation.rule for violation in violations} == {rule}


@pytest.mark.parametrize(("rule", "events"), OTHER_FAULTS)
def test_a_fault_of_another_kind_of_stream_is_found_too(rule: str, events: list[Json]) -> None:
    _, violations = check_stream(encode(numbered(events)))
    assert {violation.rule for violation in violations} == {rule}


@pytest.mark.parametrize("numbers", [[0, 1, 1], [0, 1, 3], [1, 2, 3], [0, "1", 2], [0, 2, 1], [None, 1, 2]])
def test_sequence_numbers_count_from_zero(numbers: list[Any]) -> None:
    events = fresh(CUT)
    for event, number in zip(events, numbers, strict=False):
        event["sequence_number"] = number
    rest = [event["sequence_number"] for event in events[len(numbers) :]]
    _, violations = check_stream(encode(events))
    assert {violation.rule for violation in violations} == {"sequence-number"}
    assert rest == list(range(3, len(events)))


@pytest.mark.parametrize(("rule", "mutate"), BYTE_FAULTS)
def test_a_fault_in_the_framing_is_found_by_its_rule(rule: str, mutate: Callable[[bytes], bytes]) -> None:
    sound = encode(stream(*WHOLE))
    mutated = mutate(sound)
    assert mutated != sound
    _, violations = check_stream(mutated)
    assert {violation.rule for violation in violations} == {rule}


STREAMS = [*SOUND.values(), *(mutate(encode(stream(*WHOLE))) for _, mutate in BYTE_FAULTS), encode(CUT)[:-40]]


def verdict(pieces: Iterable[bytes]) -> tuple[list[ReceivedEvent], list[Violation]]:
    checker = StreamChecker()
    for piece in pieces:
        checker.feed(piece)
    checker.end()
    return checker.events, checker.violations


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 6000)))
def test_any_split_of_the_bytes_gives_the_same_verdict(whole: bytes, cuts: list[int]) -> None:
    assert verdict(split_at(whole, cuts)) == check_stream(whole)


@pytest.mark.parametrize("whole", STREAMS)
def test_byte_by_byte_gives_the_same_verdict(whole: bytes) -> None:
    assert verdict(split_at(whole, range(len(whole)))) == check_stream(whole)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside ``value``."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, member in steps for found in [(*path, key), *places(member, (*path, key))]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_no_value_anywhere_disturbs_the_checker(data: st.DataObject) -> None:
    events: Any = fresh(stream(*WHOLE))
    *steps, last = data.draw(
        st.sampled_from([place for place in places(events) if place[-1] != "type" or len(place) > 2])
    )
    target = events
    for step in steps:
        target = target[step]
    target[last] = data.draw(JSON)
    _, violations = check_stream(b"".join(b"event: x\ndata: %b\n\n" % json.dumps(event).encode() for event in events))
    assert {violation.rule for violation in violations} <= RULES.keys()


@pytest.mark.parametrize("code", CODES)
def test_our_error_bodies_have_the_right_shape(code: str) -> None:
    assert not list(check_error_body(ApiError(code, "No.", param="input").reply().body))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no such page",
        b"[]",
        b'{"error": "no"}',
        b'{"error": {"message": "m", "type": "t", "code": null, "param": null}}',
        b'{"error": {"message": "m", "type": "t", "code": "c"}}',
        b'{"error": {"message": "m", "code": "c", "param": null}}',
        b'{"error": {"type": "t", "code": "c", "param": null}}',
        b'{"error": {"message": "m", "type": "t", "code": "c", "param": 1}}',
    ],
)
def test_other_error_bodies_are_violations(body: bytes) -> None:
    assert {violation.rule for violation in check_error_body(body)} == {"error-body"}


def test_a_whole_response_is_checked_as_the_end_of_a_stream_is() -> None:
    output = [events[-1]["item"] for events in WHOLE]
    assert not list(check_response(response("completed", output), "completed"))
    (violation,) = check_response(response("completed", [], completed_at=1), "completed")
    assert violation.rule == "answer-not-empty"


def test_the_page_about_the_rules_tells_each_of_them() -> None:
    rows = [
        f"| `{name}` | {rule.statement} | {'warning' if rule.warning else 'violation'} |"
        for name, rule in RULES.items()
    ]
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows
