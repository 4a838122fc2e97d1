"""The stream checker: sound streams pass, each planted fault is found by the rule that names it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.conformance.documents import check_error_body, check_response
from sidecar.conformance.rules import RULES, Violation
from sidecar.conformance.sse import Event
from sidecar.conformance.stream import StreamChecker, check_stream
from sidecar.responses.errors import CODES, ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.surfaces import SURFACES
from stack.paths import ROOT
from tests.core import kit
from tests.core.splits import split_at
from tests.core.streams import Json, call, encode, error, message, numbered, reasoning, response, stream

pytestmark = pytest.mark.core

Mutation = Callable[[list[Json]], Any]

WHOLE = [
    reasoning(0, "Let me ", "think."),
    message(1, "Grüße ", "an alle 👋"),
    call(2, '{"city":', '"Rom"}'),
    call(3, "{}"),
]
CUT = stream(message(0, "Hel", "lo", status="incomplete"), end="incomplete")


def written(pieces: list[bytes], failed_event: bool = False, **body: Any) -> bytes:
    """What the exchange writes for Triton's ``pieces``."""
    surface = replace(SURFACES["node"], failed_event=failed_event)
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


def fresh(events: Iterable[Json]) -> list[Json]:
    """A copy in which no two events share a value."""
    return list(map(json.loads, map(json.dumps, events)))


def at(events: list[Json], name: str, nth: int = 0) -> int:
    """Where the ``nth`` event of a type is; ``response.`` may be left out."""
    return [place for place, event in enumerate(events) if event["type"] in (name, f"response.{name}")][nth]


def drop(name: str, nth: int = 0) -> Mutation:
    return lambda events: events.pop(at(events, name, nth))


def swap(name: str, nth: int = 0) -> Mutation:
    """Exchanges an event with the one after it."""

    def mutate(events: list[Json]) -> None:
        place = at(events, name, nth)
        events[place : place + 2] = [events[place + 1], events[place]]

    return mutate


def change(name: str, path: str, value: Any, nth: int = 0) -> Mutation:
    """Sets the member at a path such as ``response.output.0.id``."""

    def mutate(events: list[Json]) -> None:
        *steps, last = path.split(".")
        target: Any = events[at(events, name, nth)]
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        target[int(last) if last.isdigit() else last] = value

    return mutate


def insert(event: Json, before: str, nth: int = 0) -> Mutation:
    return lambda events: events.insert(at(events, before, nth), event)


def append(*more: Json) -> Mutation:
    return lambda events: events.extend(more)


def remove(name: str, member: str, nth: int = 0) -> Mutation:
    def mutate(events: list[Json]) -> None:
        *steps, last = member.split(".")
        target: Any = events[at(events, name, nth)]
        for step in steps:
            target = target[step]
        del target[last]

    return mutate


def everywhere(old: str, new: str) -> Mutation:
    """Replaces a piece of JSON in all events."""

    def mutate(events: list[Json]) -> None:
        text = json.dumps(events)
        assert old in text
        events[:] = json.loads(text.replace(old, new))

    return mutate


def both(*mutations: Mutation) -> Mutation:
    def mutate(events: list[Json]) -> None:
        for mutation in mutations:
            mutation(events)

    return mutate


DELTA = {"item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "more"}
FINAL_USAGE = "response.usage"

# Each fault, and the one rule that finds it. The events are numbered anew afterwards.
FAULTS: list[tuple[str, str, Mutation]] = [
    ("no response.created", "stream-start", drop("created")),
    ("no response.in_progress", "stream-start", drop("in_progress")),
    ("start in the wrong order", "stream-start", swap("created")),
    ("response.created twice", "stream-start", insert(CUT[0], "in_progress")),
    ("no end", "one-terminal", drop("completed")),
    ("two ends", "one-terminal", append(stream(*WHOLE)[-1])),
    ("an error after a good end", "one-terminal", append(error())),
    ("a delta after the end", "after-terminal", append({"type": "response.output_text.delta", **DELTA})),
    ("an unknown event type", "known-event", insert({"type": "response.reasoning.delta"}, "output_item.done")),
    ("an index that is a text", "event-fields", change("output_text.delta", "output_index", "1")),
    ("a part index that is a text", "event-fields", change("output_text.delta", "content_index", "0")),
    ("an index that is true", "event-fields", change("output_text.delta", "output_index", True)),
    ("a delta without item_id", "event-fields", remove("output_text.delta", "item_id")),
    ("an end without response", "event-fields", remove("completed", "response")),
    ("another response id at the end", "response-id", change("completed", "response.id", "resp_2")),
    ("the status of another end", "response-status", change("completed", "response.status", "incomplete")),
    ("an error member in a good event", "stray-error", change("output_text.delta", "error", {"code": "x"})),
    ("output in response.created", "starts-empty", change("created", "response.output", [WHOLE[3][-1]["item"]])),
    ("an item that begins with content", "starts-empty", change("output_item.added", "item.arguments", "{", nth=2)),
    ("a part that begins with text", "starts-empty", change("content_part.added", "part.text", "x")),
    ("an output_index used twice", "output-index", change("output_item.added", "output_index", 0, nth=1)),
    ("an output_index that skips one", "output-index", everywhere('"output_index": 3', '"output_index": 4')),
    ("a delta with another output_index", "output-index", change("output_text.delta", "output_index", 0)),
    ("a delta with another item_id", "item-id", change("output_text.delta", "item_id", "msg_9")),
    ("two items with one id", "item-id", everywhere('"fc_3"', '"fc_2"')),
    ("an item that is not added", "item-open", drop("output_item.added")),
    ("an item that is added after its part", "item-open", swap("output_item.added", nth=1)),
    ("a delta after its item", "item-open", insert({"type": "response.output_text.delta", **DELTA}, "completed")),
    ("an item that is not done", "item-done", drop("output_item.done", nth=1)),
    ("a last item that is not done", "item-done", drop("output_item.done", nth=3)),
    ("a call_id that changes", "item-unchanged", change("output_item.done", "item.call_id", "call_9", nth=2)),
    ("a name that changes", "item-unchanged", change("output_item.added", "item.name", "see", nth=2)),
    ("a part that is not added", "part-order", drop("content_part.added")),
    ("a part that is not done", "part-order", drop("content_part.done")),
    ("a text that is not done", "part-order", drop("output_text.done")),
    ("arguments that are not done", "part-order", drop("function_call_arguments.done")),
    ("a text done after its part", "part-order", swap("output_text.done")),
    (
        "a delta after the text is done",
        "part-order",
        insert({"type": "response.output_text.delta", **DELTA}, "content_part.done", nth=1),
    ),
    ("a text done twice", "part-order", insert(WHOLE[1][4], "content_part.done", nth=1)),
    ("a part index that skips one", "content-index", change("content_part.added", "content_index", 1)),
    ("a delta of another part", "content-index", change("output_text.delta", "content_index", 1)),
    ("reasoning in a message", "part-type", change("content_part.added", "part.type", "refusal")),
    ("deltas in the wrong order", "done-equals-deltas", swap("output_text.delta")),
    ("a delta that is missing", "done-equals-deltas", drop("output_text.delta", nth=1)),
    ("a text that is not its deltas", "done-equals-deltas", change("output_text.done", "text", "Grüße")),
    (
        "arguments that are not their deltas",
        "done-equals-deltas",
        change("function_call_arguments.done", "arguments", "{}"),
    ),
    ("a part that is not its text", "part-equals-text", change("content_part.done", "part.text", "x", nth=1)),
    (
        "an item that is not its parts",
        "item-equals-parts",
        change("output_item.done", "item.content.0.text", "x", nth=1),
    ),
    ("an item without its parts", "item-equals-parts", change("output_item.done", "item.content", [], nth=1)),
    (
        "a call that is not its arguments",
        "item-equals-parts",
        change("output_item.done", "item.arguments", '{"a":1}', nth=2),
    ),
    (
        "a final text that was not streamed",
        "final-equals-streamed",
        change("completed", "response.output.1.content.0.text", "x"),
    ),
    ("a final item that is missing", "final-equals-streamed", lambda events: events[-1]["response"]["output"].pop()),
    (
        "final items in another order",
        "final-equals-streamed",
        lambda events: events[-1]["response"]["output"].reverse(),
    ),
    ("no created_at", "response-shape", remove("completed", "response.created_at")),
    ("no completed_at at the end", "completed-at", change("completed", "response.completed_at", None)),
    (
        "a reason in a whole answer",
        "incomplete-details",
        change("completed", "response.incomplete_details", {"reason": "x"}),
    ),
    (
        "an error in a good response",
        "response-error",
        change("completed", "response.error", {"code": "c", "message": "m"}),
    ),
    ("an item without status", "item-shape", everywhere('"status": "completed", "arguments"', '"arguments"')),
    ("an empty id", "item-shape", everywhere('"fc_3"', '""')),
    ("an item added as completed", "item-status", change("output_item.added", "item.status", "completed")),
    (
        "an item that never ends",
        "item-status",
        everywhere('"status": "completed", "content"', '"status": "in_progress", "content"'),
    ),
    ("two calls with one call_id", "call-id", everywhere('"call_3"', '"call_2"')),
    ("arguments that are not JSON", "arguments-json", everywhere('"{}"', '"{"')),
    ("no usage", "usage-shape", change("completed", FINAL_USAGE, None)),
    ("a token count that is a text", "usage-shape", change("completed", f"{FINAL_USAGE}.input_tokens", "7")),
    ("a total that is wrong", "usage-total", change("completed", f"{FINAL_USAGE}.total_tokens", 13)),
    ("no details of the input", "usage-details", remove("completed", f"{FINAL_USAGE}.input_tokens_details")),
    (
        "more reasoning than output",
        "usage-details",
        change("completed", f"{FINAL_USAGE}.output_tokens_details.reasoning_tokens", 6),
    ),
]


@pytest.mark.parametrize(("rule", "mutate"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_planted_fault_is_found_by_its_rule(rule: str, mutate: Mutation) -> None:
    events = fresh(stream(*WHOLE))
    mutate(events)
    _, violations = check_stream(encode(numbered(events)))
    assert {violation.rule for violation in violations} == {rule}


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("answer-not-empty", stream()),
        ("incomplete-details", stream(message(0, "x"), end="incomplete", incomplete_details=None)),
        ("completed-at", stream(message(0, "x"), end="incomplete", completed_at=1)),
        ("response-error", stream(end="failed", error=None)),
        ("item-status", stream(message(0, "x", status="incomplete"))),
        ("incomplete-last", stream(message(0, "x", status="incomplete"), message(1, "y"), end="incomplete")),
        ("error-event", [*CUT[:4], {**error(), "error": None}]),
        ("error-event", [*CUT[:4], error(code=None)]),
        ("error-event", [*CUT[:4], {"type": "error", "error": error()["error"]}]),
        ("error-event", [*CUT[:4], {**error(), "message": "another"}]),
        ("one-terminal", [*CUT[:4], error(), error()]),
        ("one-terminal", []),
        ("part-type", stream(message(0, "x", kind="reasoning_text"))),
    ],
)
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


DONE = b"data: [DONE]\n\n"

BYTE_FAULTS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("sse-event-name", lambda sound: sound.replace(b"event: response.created", b"event: response.started")),
    ("sse-fields", lambda sound: sound.replace(b"event: response.created\n", b"")),
    ("sse-fields", lambda sound: sound.replace(b"event: response.created\n", b"id: 1\nevent: response.created\n")),
    ("sse-fields", lambda sound: sound.replace(b'", "', b'",\ndata: "', 1)),
    ("sse-fields", lambda sound: b"event: ping\n\n" + sound),
    ("sse-comment", lambda sound: sound.replace(b"\ndata: ", b"\n: keep-alive\ndata: ", 1)),
    ("sse-comment", lambda sound: b": keep-alive\n" + sound),
    ("sse-json", lambda sound: sound.replace(b"data: {", b"data: ", 1)),
    ("sse-json", lambda sound: sound.replace(b"1800000000", b"NaN", 1)),
    ("sse-json", lambda sound: sound.replace(b'{"type"', b'{"kind"', 1)),
    ("sse-utf-8", lambda sound: sound.replace("👋".encode(), b"\xff")),
    ("sse-line-separators", lambda sound: sound.replace("👋".encode(), "\u2028".encode())),
    ("sse-done-marker", lambda sound: sound + DONE),
    ("sse-whole-end", lambda sound: sound + b": keep-al"),
    ("sse-whole-end", lambda sound: sound + b"event: ping\n"),
]


@pytest.mark.parametrize(("rule", "mutate"), BYTE_FAULTS)
def test_a_fault_in_the_framing_is_found_by_its_rule(rule: str, mutate: Callable[[bytes], bytes]) -> None:
    sound = encode(stream(*WHOLE))
    mutated = mutate(sound)
    assert mutated != sound
    _, violations = check_stream(mutated)
    assert {violation.rule for violation in violations} == {rule}


STREAMS = [*SOUND.values(), *(mutate(encode(stream(*WHOLE))) for _, mutate in BYTE_FAULTS), encode(CUT)[:-40]]


def verdict(pieces: Iterable[bytes]) -> tuple[list[Event], list[Violation]]:
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
