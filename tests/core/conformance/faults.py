"""Sound streams and answers with one fault planted in each, beside the one rule that has to find it."""

from collections.abc import Callable

from conformance import Answer, Probe
from conformance.markers import MARKERS
from conformance.probes import METADATA, PROBES
from tests.core.conformance.answers import DOCUMENT, STREAM, answer, refused, streamed, timed, whole
from tests.core.conformance.mutations import Mutation, append, change, drop, everywhere, insert, remove, swap
from tests.core.conformance.streams import USAGE, Json, call, encode, error, item, message, numbered, reasoning, stream

WHOLE = [
    reasoning(0, "Let me ", "think."),
    message(1, "Grüße ", "an alle 👋"),
    call(2, '{"city":', '"Rom"}'),
    call(3, "{}"),
]
CUT = stream(message(0, "Hel", "lo", status="incomplete"), end="incomplete")


DELTA = {"item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "more"}
FINAL_USAGE = "response.usage"
NOTHING_COUNTED = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}
SEARCH = {"id": "ws_0", "type": "web_search_call", "status": "in_progress"}

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
    ("another model at the end", "response-unchanged", change("completed", "response.model", "n")),
    ("another time in the middle", "response-unchanged", change("in_progress", "response.created_at", 1)),
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
    (
        "an empty delta",
        "empty-delta",
        insert({"type": "response.output_text.delta", **DELTA, "delta": ""}, "output_text.done"),
    ),
    (
        "an empty delta of arguments",
        "empty-delta",
        insert(
            {"type": "response.function_call_arguments.delta", "item_id": "fc_2", "output_index": 2, "delta": ""},
            "function_call_arguments.done",
        ),
    ),
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
    ("no tools", "response-members", remove("completed", "response.tools")),
    ("no top_p where it begins", "response-members", remove("created", "response.top_p")),
    ("parallel_tool_calls null", "response-members", change("completed", "response.parallel_tool_calls", None)),
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
    ("a text without annotations", "part-shape", everywhere(', "annotations": []', "")),
    ("an empty id", "item-shape", everywhere('"fc_3"', '""')),
    ("an item added as completed", "item-status", change("output_item.added", "item.status", "completed")),
    (
        "an item that never ends",
        "item-status",
        everywhere('"status": "completed", "content"', '"status": "in_progress", "content"'),
    ),
    (
        "reasoning that never ends",
        "item-status",
        everywhere('"summary": [], "status": "completed"', '"summary": [], "status": "in_progress"'),
    ),
    (
        "a call that is cut in a completed response",
        "item-status",
        everywhere('"status": "completed", "arguments"', '"status": "incomplete", "arguments"'),
    ),
    ("two calls with one call_id", "call-id", everywhere('"call_3"', '"call_2"')),
    ("arguments that are not JSON", "arguments-json", everywhere('"{}"', '"{"')),
    ("no usage", "usage-shape", change("completed", FINAL_USAGE, None)),
    ("a token count that is a text", "usage-shape", change("completed", f"{FINAL_USAGE}.input_tokens", "7")),
    (
        "usage that was not counted",
        "usage-counted",
        lambda events: events[-1]["response"].update(usage=NOTHING_COUNTED),
    ),
    ("a total that is wrong", "usage-total", change("completed", f"{FINAL_USAGE}.total_tokens", 13)),
    ("no details of the input", "usage-details", remove("completed", f"{FINAL_USAGE}.input_tokens_details")),
    (
        "more reasoning than output",
        "usage-details",
        change("completed", f"{FINAL_USAGE}.output_tokens_details.reasoning_tokens", 6),
    ),
]


OTHER_FAULTS: list[tuple[str, list[Json]]] = [
    ("answer-not-empty", stream()),
    ("incomplete-details", stream(message(0, "x"), end="incomplete", incomplete_details=None)),
    ("completed-at", stream(message(0, "x"), end="incomplete", completed_at=1)),
    ("response-error", stream(end="failed", error=None)),
    ("item-status", stream(message(0, "x", status="incomplete"))),
    ("item-status", stream(item(0, SEARCH), message(1, "x"))),
    ("item-status", [*stream(message(0, "x", status="in_progress"))[:-1], *stream(end="failed")[-1:]]),
    ("incomplete-last", stream(message(0, "x", status="incomplete"), message(1, "y"), end="incomplete")),
    ("error-event", [*CUT[:4], {**error(), "error": None}]),
    ("error-event", [*CUT[:4], error(code=None)]),
    ("error-event", [*CUT[:4], {"type": "error", "error": error()["error"]}]),
    ("error-event", [*CUT[:4], {**error(), "message": "another"}]),
    ("one-terminal", [*CUT[:4], error(), error()]),
    ("one-terminal", []),
    ("part-type", stream(message(0, "x", kind="reasoning_text"))),
]


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
    ("sse-done-marker", lambda sound: sound + b"data: [DONE]\n\n"),
    ("sse-whole-end", lambda sound: sound + b": keep-al"),
    ("sse-whole-end", lambda sound: sound + b"event: ping\n"),
]


STREAMED = Probe("streamed", {"stream": True})
ASKED_WHOLE = Probe("whole", {})
REFUSED = Probe("refused", {}, statuses=(400,))
BY_NAME = {probe.name: probe for probe in PROBES}
LIMITED = BY_NAME["an output limit, whole"]
ECHOED = BY_NAME["metadata"]
PACED = BY_NAME["a long text, streamed"]
DEMANDED = BY_NAME["a demanded call, streamed"]
NAMED = BY_NAME["a named strict call, whole"]
SINGLE = BY_NAME["no parallel calls"]
REPORTED = BY_NAME["a JSON schema, whole"]
NO_MODEL = BY_NAME["an unknown model, streamed"]

LONG = stream(message(0, *map(str, range(11))))
STRICT = [{"type": "function", "name": "get_weather", "strict": True}]


def called(index: int, arguments: str = '{"city":"Rome"}', name: str = "get_weather", **changes: str) -> list[Json]:
    """The events of a call of the tool that the probes have."""
    events = call(index, arguments, **changes)
    return [{**event, "item": {**event["item"], "name": name}} if "item" in event else event for event in events]


# Each fault: the one rule that finds it, the probe, and what is answered.
ANSWER_FAULTS: list[tuple[str, Probe, Answer]] = [
    ("http-status", ASKED_WHOLE, refused()),
    ("http-status", REFUSED, whole(*WHOLE)),
    ("http-status", NO_MODEL, streamed(message(0, "x"))),
    ("http-status", NO_MODEL, streamed(end="failed")),
    ("http-status", DEMANDED, refused(400)),
    ("http-status", DEMANDED, refused(400, "unsupported_parameter", "input")),
    ("http-status", ASKED_WHOLE, refused(400, "unsupported_parameter", "tools")),
    ("http-complete", ASKED_WHOLE, whole(*WHOLE)._replace(failure="broken off")),
    ("content-type", ASKED_WHOLE, whole(*WHOLE)._replace(headers=STREAM)),
    ("content-type", STREAMED, streamed(*WHOLE)._replace(headers=DOCUMENT)),
    ("content-type", REFUSED, refused()._replace(headers={"x-request-id": "r"})),
    (
        "content-type",
        STREAMED,
        streamed(*WHOLE)._replace(headers=STREAM | {"content-type": "text/event-stream; charset=latin-1"}),
    ),
    ("request-id", REFUSED, refused()._replace(headers={"content-type": "application/json"})),
    ("error-body", REFUSED, answer(400, DOCUMENT, b"no")),
    ("response-shape", ASKED_WHOLE, answer(200, DOCUMENT, b"[]")),
    ("response-status", ASKED_WHOLE, whole(*WHOLE, status="unheard of", completed_at=1, usage=USAGE)),
    ("item-status", ASKED_WHOLE, whole(message(0, "x", status="incomplete"))),
    ("item-status", ASKED_WHOLE, whole(message(0, "x", status="in_progress"))),
    ("item-status", ASKED_WHOLE, whole(call(0, "{}", status="in_progress"))),
    ("item-status", ASKED_WHOLE, whole(reasoning(0, "x", status="incomplete"), message(1, "y"))),
    ("item-status", ASKED_WHOLE, whole(item(0, SEARCH), message(1, "y"))),
    ("part-type", ASKED_WHOLE, whole(message(0, "x", kind="reasoning_text"))),
    ("part-shape", ASKED_WHOLE, whole(item(0, {**message(0, "x")[-1]["item"], "content": [{"type": "output_text"}]}))),
    ("item-shape", ASKED_WHOLE, whole(item(0, {**reasoning(0, "x")[-1]["item"], "content": "x"}))),
    ("metadata-echo", ECHOED, streamed(message(0, "x"))),
    ("output-limit", LIMITED, whole(*WHOLE, usage=USAGE | {"output_tokens": 17, "total_tokens": 24})),
    ("output-limit", LIMITED, whole(*WHOLE, status="incomplete", incomplete_details={"reason": "content_filter"})),
    ("answer-failed", STREAMED, answer(200, STREAM, encode(numbered([*CUT[:4], error()])))),
    ("answer-failed", STREAMED, streamed(end="failed")),
    ("demanded-call", DEMANDED, streamed(message(0, "Sunny."))),
    ("demanded-call", NAMED, whole(message(0, "Sunny."))),
    ("single-call", SINGLE, streamed(called(0), called(1))),
    ("known-tool", DEMANDED, streamed(called(0, name="look"))),
    ("known-tool", BY_NAME["a function tool"], streamed(called(0), called(1, name="look"))),
    ("strict-arguments", NAMED, whole(called(0, '{"city":"Oslo"}'), tools=STRICT)),
    ("strict-arguments", NAMED, whole(called(0, "{}"), tools=STRICT)),
    ("arguments-json", NAMED, whole(called(0, "Rome"), tools=STRICT)),
    ("structured-output", REPORTED, whole(message(0, "It is sunny."))),
    ("structured-output", REPORTED, whole(message(0, '```json\n{"city":"Rome","sunny":true}\n```'))),
    ("structured-output", REPORTED, whole(message(0, '{"city":"Rome","sunny":"yes"}'))),
    ("structured-output", REPORTED, whole(message(0, '{"city":"Rome"}'))),
    ("sse-chunks", STREAMED, answer(200, STREAM, encode(CUT)[:50], encode(CUT)[50:])),
    # The whole stream at its end, and the same after a head that came at once.
    ("sse-buffered", PACED, timed(LONG, [2.0] * len(LONG))),
    ("sse-buffered", PACED, timed(LONG, [0.01, 0.01, *(2.0 + at / 10_000 for at in range(len(LONG) - 2))])),
    ("control-markers", STREAMED, streamed(message(0, "Hello", "<|im_", "end|>"))),
    ("control-markers", STREAMED, streamed(message(0, "No.<｜end▁of▁sentence｜>", kind="refusal"))),
    ("control-markers", STREAMED, streamed(reasoning(0, "Well", "</think>"), message(1, "x"))),
    ("control-markers", STREAMED, streamed(reasoning(0, "x", summary=["[THINK]"]), message(1, "x"))),
    ("control-markers", STREAMED, streamed(call(0, '{"city":"Rome<|call|>"}'))),
    ("control-markers", STREAMED, streamed(called(0, name="get_weather<|channel|>commentary"))),
    *(
        ("control-markers", ASKED_WHOLE, whole(message(0, f"Sure. {marker}")))
        for markers in MARKERS.values()
        for marker in markers
    ),
]

SOUND_ANSWERS: list[tuple[Probe, Answer]] = [
    (STREAMED, answer(200, STREAM, encode(CUT))),
    (STREAMED, answer(200, STREAM | {"content-type": "text/event-stream"}, encode(CUT[:2]), encode(CUT[2:]))),
    (ASKED_WHOLE, whole(*WHOLE)),
    (REFUSED, refused()),
    (NO_MODEL, refused(404)),
    (LIMITED, whole(*WHOLE)),
    (ECHOED, streamed(message(0, "x"), metadata=METADATA)),
    (DEMANDED, streamed(called(0))),
    (DEMANDED, streamed(message(0, "x", status="incomplete"), end="incomplete")),
    (DEMANDED, refused(400, "unsupported_parameter", "tools[0].strict")),
    (DEMANDED, refused(400, "unsupported_parameter")),
    (NAMED, whole(called(0), tools=STRICT)),
    # Nothing says that the arguments were held to the schema.
    (NAMED, whole(called(0, '{"city":"Oslo"}'))),
    (SINGLE, streamed(called(0))),
    (REPORTED, whole(message(0, '{"city": "Rome", "sunny": true}'))),
    (REPORTED, whole(message(0, '{"city": "Ro', status="incomplete"), status="incomplete")),
    (STREAMED, streamed(message(0, "List<String> a[0] = b < c > d; <b>bold</b> [args] <|"))),
    # As fast as it gets; at once, but too soon to tell; at once, but too few deltas to tell; all of it slow.
    (PACED, timed(LONG, [0.2 + at / 1000 for at in range(len(LONG))])),
    (PACED, timed(LONG, [0.01] * len(LONG))),
    (PACED, timed(CUT, [2.0] * len(CUT))),
    (PACED, timed(LONG, [2.0 + at / 10 for at in range(len(LONG))])),
    # Only a long answer is judged.
    (STREAMED, timed(LONG, [2.0] * len(LONG))),
]
