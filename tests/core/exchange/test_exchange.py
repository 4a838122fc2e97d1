"""The exchange: it ends exactly once and rightly, whatever happens and however the bytes are split."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.backends.triton.frames import FrameReader, GrpcStatus, payload_of
from sidecar.backends.triton.protocol import service_pb2
from sidecar.config.models import SurfaceSettings
from sidecar.exchange.commands import CallUpstream, SendBody, SendHead
from sidecar.exchange.events import Abort, ClientGone, Event, Tick, UpstreamBytes, UpstreamEnd
from sidecar.exchange.phases.generating import KEEP_ALIVE
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES
from tests.core.kit import (
    END,
    WHOLE_ANSWER,
    broken_end,
    exchange,
    failure,
    final,
    handle,
    model,
    play,
    reply,
    request,
    response,
    sent,
    shape,
    text,
    trailers,
    upstream,
    whole_end,
)
from tests.core.splits import split_at
from tests.core.sse import parse

ANSWER = text("Grüße ") + text("an alle 👋") + response([END]) + final()


def test_a_stream_is_a_head_and_events_and_an_end() -> None:
    _, commands = play([ANSWER], stream=True)
    assert shape(commands) == WHOLE_ANSWER
    head = commands[0]
    assert isinstance(head, SendHead)
    assert head.headers["content-type"].startswith("text/event-stream")
    assert head.headers["server-timing"] == "ttft;dur=1000.0"
    events = parse(sent(commands))
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"


def test_the_final_response_tells_text_usage_and_timing() -> None:
    _, commands = play([ANSWER], stream=True, metadata={"k": "v"})
    final_response = parse(sent(commands))[-1].data["response"]
    assert final_response["output"][0]["content"][0]["text"] == "Grüße an alle 👋"
    assert final_response["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 21,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 26,
    }
    assert final_response["b3os"] == {
        "route": "local",
        "node": "n1",
        "timing": {"ttft_ms": 1000.0, "total_ms": 2000.0},
    }
    assert (final_response["created_at"], final_response["completed_at"]) == (1_800_000_000, 1_800_000_002)
    assert final_response["metadata"] == {"k": "v"}


def test_the_same_ids_run_through_the_stream() -> None:
    _, commands = play([ANSWER], stream=True)
    events = parse(sent(commands))
    responses = [event.data["response"] for event in events if "response" in event.data]
    assert len({found["id"] for found in responses}) == 1
    items = {event.data["item_id"] for event in events if "item_id" in event.data}
    assert items == {responses[-1]["output"][0]["id"]}


def test_without_stream_the_answer_is_one_json_document() -> None:
    _, commands = play([ANSWER])
    assert shape(commands) == WHOLE_ANSWER
    head = commands[0]
    assert isinstance(head, SendHead)
    body = sent(commands)
    assert head.headers["content-length"] == str(len(body))
    document = json.loads(body)
    assert document["status"] == "completed"
    assert document["b3os"]["timing"] == {"model_ms": 1000.0, "total_ms": 2000.0}


def test_streamed_and_whole_answers_are_the_same() -> None:
    streamed = parse(sent(play([ANSWER], stream=True)[1]))[-1].data["response"]
    whole = json.loads(sent(play([ANSWER])[1]))
    del streamed["b3os"], whole["b3os"]
    assert streamed == whole


@given(
    st.sampled_from(
        [
            ANSWER,
            text("one") + failure("boom") + final(),
            text("cut"),
            response([END]) + final(),
            text("  \n") + text("x") + final(),
            text("a stop|here") + text("more") + final(),
            text("é")[:-1],
        ]
    ),
    st.lists(st.integers(0, 800), max_size=20),
    st.booleans(),
)
def test_any_split_of_the_upstream_bytes_gives_the_same_bytes(stream: bytes, cuts: list[int], streamed: bool) -> None:
    def run(pieces: list[bytes]) -> tuple[bytes, list[str]]:
        _, commands = play(pieces, of=exchange(model(stop=("|here",))), stream=streamed)
        return sent(commands), shape(commands)

    assert run(split_at(stream, cuts)) == run([stream])


def test_the_head_waits_for_the_first_generated_token() -> None:
    waiting = exchange()
    handle(waiting, request(stream=True))
    assert waiting.handle(UpstreamBytes(b"", 101.0)) == []
    half, rest = text("é")[:-1], text("é")[-1:]
    assert waiting.handle(UpstreamBytes(half, 101.0)) == []
    assert shape(waiting.handle(UpstreamBytes(rest, 101.0))) == ["SendHead", "SendBody"]


def test_half_a_character_is_a_token_and_shows_nothing() -> None:
    waiting = exchange()
    handle(waiting, request(stream=True))
    commands = waiting.handle(UpstreamBytes(response([0xC3 + 100]), 101.0))
    assert [event.type for event in parse(sent(commands))] == ["response.created", "response.in_progress"]


def test_nothing_generated_is_one_empty_message() -> None:
    _, commands = play([response([END]), final()], stream=True)
    final_response = parse(sent(commands))[-1].data["response"]
    assert [item["content"][0]["text"] for item in final_response["output"]] == [""]
    assert final_response["usage"]["output_tokens"] == 1


def test_leading_white_space_opens_no_item_and_is_not_lost() -> None:
    started = exchange()
    handle(started, request(stream=True))
    commands = started.handle(UpstreamBytes(text("\n "), 101.0))
    assert [event.type for event in parse(sent(commands))] == ["response.created", "response.in_progress"]
    events = parse(sent(started.handle(UpstreamBytes(text("x"), 101.0))))
    assert events[-1].data["delta"] == "\n x"


def test_a_cut_answer_is_incomplete_to_its_last_item() -> None:
    _, commands = play([text("abc"), final()], stream=True, max_output_tokens=3)
    last = parse(sent(commands))[-1]
    assert last.type == "response.incomplete"
    assert last.data["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert last.data["response"]["output"][0]["status"] == "incomplete"
    assert last.data["response"]["completed_at"] is None


@pytest.mark.parametrize(("asked", "given_to_model"), [(None, 95), (1000, 95), (7, 7)])
def test_the_output_is_clamped_to_what_the_context_leaves(asked: int | None, given_to_model: int) -> None:
    (call,) = handle(exchange(), request(max_output_tokens=asked))
    assert isinstance(call, CallUpstream)
    (whole,) = FrameReader().feed(call.body)
    message = service_pb2.ModelInferRequest.FromString(payload_of(whole))
    sizes = {tensor.name: raw for tensor, raw in zip(message.inputs, message.raw_input_contents, strict=True)}
    assert int.from_bytes(sizes["request_output_len"], "little") == given_to_model


def test_only_tracing_headers_reach_the_upstream() -> None:
    (call,) = handle(exchange(), request())
    assert isinstance(call, CallUpstream)
    assert call.headers == {"x-request-id": "r-1"}


@pytest.mark.parametrize("prompt_tokens", [100, 101])
def test_a_prompt_that_leaves_no_room_is_refused(prompt_tokens: int) -> None:
    refused = reply(handle(exchange(model(prompt_tokens)), request()))
    assert (refused.status, refused.outcome) == (400, "context_length_exceeded")


def test_a_body_over_the_models_limit_is_refused_with_both_numbers() -> None:
    refused = reply(handle(exchange(), request(instructions="x" * 2000)))
    assert refused.status == 413
    message = json.loads(refused.body)["error"]["message"]
    assert "1000" in message
    assert str(len(request(instructions="x" * 2000).body)) in message


def test_an_unknown_model_is_not_available() -> None:
    refused = reply(handle(exchange(), request(model="gpt-5")))
    error = json.loads(refused.body)["error"]
    assert (refused.status, error["code"], error["param"]) == (404, "model_not_available", "model")
    assert error["message"] == "gpt-5 is not served on this node"


def test_a_model_not_yet_discovered_is_unavailable() -> None:
    refused = reply(handle(exchange(model(contract=None)), request()))
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("pieces", "end", "status"),
    [
        ([failure("Exceeds maximum queue size")], whole_end(), 503),
        ([failure("Prompt length (9) exceeds maximum input length (8)")], whole_end(), 400),
        ([trailers(b"grpc-status:13\r\ngrpc-message:boom\r\n")], whole_end(), 503),
        ([], broken_end(http_status=503, grpc=GrpcStatus(14, "no healthy upstream")), 503),
        ([], broken_end(http_status=504, grpc=GrpcStatus(14, "stream timeout")), 503),
        ([], broken_end(http_status=None), 503),
        ([b"\x01\x00\x00\x00\x01x"], whole_end(), 503),
        ([final()[:-20]], whole_end(), 503),
    ],
)
def test_a_failure_before_the_first_token_is_a_plain_error(
    pieces: list[bytes], end: UpstreamEnd, status: int, streamed: bool
) -> None:
    _, commands = play(pieces, end, stream=streamed)
    assert reply(commands).status == status


FAILURES_AFTER_TOKENS = [
    ([text("some"), failure("Traceback: secret")], whole_end()),
    ([text("some")], broken_end()),
    ([text("some")], whole_end()),
    ([text("some"), trailers()], whole_end()),
    ([text("some"), response([], final=True)], broken_end()),
    ([text("some"), final()[:-3]], whole_end()),
    ([text("some"), response([], final=True), trailers(b"grpc-status:13\r\n")], whole_end()),
]


@pytest.mark.parametrize(("pieces", "end"), FAILURES_AFTER_TOKENS)
def test_a_failure_after_tokens_ends_a_stream_with_one_error_event(pieces: list[bytes], end: UpstreamEnd) -> None:
    _, commands = play(pieces, end, stream=True)
    assert shape(commands) == WHOLE_ANSWER
    events = parse(sent(commands))
    terminal = [event.type for event in events if event.type in ("error", "response.completed", "response.failed")]
    assert terminal == ["response.failed", "error"]
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1].data["error"]["type"] == "server_error"
    assert b"secret" not in sent(commands)


@pytest.mark.parametrize(("pieces", "end"), FAILURES_AFTER_TOKENS)
def test_a_failure_after_tokens_is_a_plain_error_without_stream(pieces: list[bytes], end: UpstreamEnd) -> None:
    _, commands = play(pieces, end)
    assert reply(commands).status >= 500


def test_a_surface_may_leave_the_failed_event_out() -> None:
    surface = replace(SURFACES["node"], settings=SurfaceSettings(failed_event=False))
    _, commands = play([text("some")], broken_end(), of=exchange(surface=surface), stream=True)
    assert [event.type for event in parse(sent(commands))][-2:] == ["response.output_text.delta", "error"]


def test_failed_event_comes_just_before_the_error_and_holds_what_was_streamed() -> None:
    _, commands = play([text("some")], broken_end(), stream=True)
    *_, failed, error = parse(sent(commands))
    assert (failed.type, error.type) == ("response.failed", "error")
    assert failed.data["response"]["status"] == "failed"
    assert (failed.data["response"]["error"]["code"], error.data["code"]) == (
        "server_error",
        "infer_backend_unavailable",
    )
    (item,) = failed.data["response"]["output"]
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "some")


def test_numbers_of_events_that_were_thrown_away_are_given_again() -> None:
    def broken(node: str, timing: object, route: str) -> dict[str, object]:
        raise RuntimeError

    played = exchange(surface=replace(SURFACES["node"], extension=broken))
    handle(played, request(stream=True))
    commands = upstream(played, text("some") + final())
    with pytest.raises(RuntimeError):
        played.handle(whole_end())
    commands += played.handle(Abort(ApiError("internal", "internal error")))
    events = parse(sent(commands))
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1].type == "error"


def test_a_stop_string_ends_the_answer_at_once() -> None:
    stopping = exchange(model(stop=("<|im_end|>",)))
    handle(stopping, request(stream=True))
    stopping.handle(UpstreamBytes(text("done<|im_"), 101.0))
    commands = stopping.handle(UpstreamBytes(text("end|>") + text("never"), 101.0))
    last = parse(sent(commands))[-1]
    assert last.type == "response.completed"
    assert last.data["response"]["output"][0]["content"][0]["text"] == "done"
    assert last.data["response"]["usage"]["output_tokens"] == len("done<|im_end|>")
    assert stopping.done


@pytest.mark.parametrize("streamed", [False, True])
def test_silence_before_the_first_token_is_a_timeout(streamed: bool) -> None:
    silent = exchange()
    handle(silent, request(stream=streamed))
    assert silent.due_at == 110.0
    assert silent.handle(Tick(109.9)) == []
    assert reply(silent.handle(Tick(110.0))).status == 503


def test_silence_in_a_stream_is_kept_alive_and_then_an_error() -> None:
    silent = exchange()
    handle(silent, request(stream=True))
    silent.handle(UpstreamBytes(text("some"), 101.0))
    assert silent.handle(Tick(103.9)) == []
    assert silent.handle(Tick(104.0)) == [SendBody(KEEP_ALIVE)]
    assert silent.handle(Tick(105.0)) == []
    assert silent.due_at == 106.0
    commands = silent.handle(Tick(106.0))
    assert [event.type for event in parse(sent(commands))] == ["response.failed", "error"]
    assert silent.report.outcome == "infer_backend_unavailable"


def test_a_tick_before_the_request_changes_nothing() -> None:
    assert exchange().handle(Tick(1e9)) == []


def test_an_abort_ends_with_the_error_it_brings() -> None:
    error = ApiError("node_unavailable", "restarting")
    waiting, answering = exchange(), exchange()
    assert reply(waiting.handle(Abort(error))).outcome == "node_unavailable"
    handle(answering, request(stream=True))
    answering.handle(UpstreamBytes(text("some"), 101.0))
    assert parse(sent(answering.handle(Abort(error))))[-1].data["code"] == "node_unavailable"


def test_after_its_end_nothing_happens_any_more() -> None:
    over, _ = play([ANSWER], stream=True)
    events: list[Event] = [
        UpstreamBytes(ANSWER, 103.0),
        whole_end(),
        Tick(1e9),
        ClientGone(),
        Abort(ApiError("internal", "x")),
    ]
    assert [over.handle(event) for event in events] == [[]] * len(events)
    assert over.report.outcome == "completed"


def test_a_client_that_leaves_is_billed_to_the_last_token() -> None:
    left = exchange()
    handle(left, request(stream=True))
    left.handle(UpstreamBytes(text("abcde"), 101.0))
    assert left.handle(ClientGone()) == []
    report = left.report
    assert (report.outcome, report.usage.input_tokens, report.usage.output_tokens) == ("client_gone", 5, 5)
