"""Models that native upstreams serve, through real Envoy: what passes, what is sent, and how each failure ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from conformance import check_stream
from conformance.sse import ReceivedEvent
from stack.local import SCRIPTED, LocalStack
from stack.sidecar import NativeModel
from stack.triton import Triton
from stack.upstreams import NATIVE_SCRIPTED, LlamaServer, ScriptedUpstream
from tests.core.sse import parse
from tests.e2e.client import eventually
from tests.e2e.raw_http import Reply
from tests.e2e.test_bureau import ask, error_of
from tests.e2e.test_receipts import receipt

SLUG, FAILOVER, REROUTED = "scripted/native", "scripted/failover", "scripted/rerouted"
LLAMA = "huggingface/smollm2-135m-native"
FUNCTION: Any = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
WORDS = "a secret of the upstream"
_SEVERAL = 8
"""Requests at a time, of which every worker gets some."""


@pytest.fixture(scope="module")
def client(stack: LocalStack) -> Iterator[OpenAI]:
    with OpenAI(base_url=stack.bureau_url, api_key=stack.project_key, max_retries=0) as client:
        yield client


@pytest.fixture
def served_before(stack: LocalStack) -> None:
    """Each worker has served a request: a route rests after several failures in a row."""
    with ThreadPoolExecutor(_SEVERAL) as clients:
        while any(reply.status != 200 for reply in clients.map(partial(ask, stack), [said("ok")] * _SEVERAL)):
            time.sleep(0.2)


def said(*steps: Any, **body: Any) -> dict[str, Any]:
    """A request whose input has the upstream play ``steps``."""
    return {"model": SLUG, "input": f"script:{json.dumps(steps)}", **body}


def by_route(**scripts: list[Any]) -> dict[str, Any]:
    """The same for a model with two routes, a script for each."""
    return {"model": FAILOVER, "input": f"script:{json.dumps(scripts)}"}


def sent(upstream: ScriptedUpstream, since: int) -> list[dict[str, Any]]:
    """The requests that the upstream got after its diary had ``since`` entries."""
    requests = [entry for entry in upstream.diary()[since:] if "path" in entry]
    return [{**entry, "headers": dict(entry["headers"]), "body": json.loads(entry["body"])} for entry in requests]


def events_of(reply: Reply) -> list[ReceivedEvent]:
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"].startswith("text/event-stream")
    return parse(reply.body)


def test_the_sdk_gets_the_upstream_s_answer_as_ours(client: OpenAI) -> None:
    raw = client.responses.with_raw_response.create(**said("Hello there"), metadata={"a": "b"}, user="alice")
    response = raw.parse()
    assert response.output_text == "Hello there"
    assert (response.model, response.store, response.metadata) == (SLUG, False, {"a": "b"})
    assert response.user == "alice"
    assert response.id.startswith("resp_") and "upstream" not in response.id
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 2)
    assert response.model_extra is not None and response.model_extra["an_unknown_member"] == {"kept": True}
    assert raw.headers["x-request-id"] != "req_of_the_upstream"


def test_the_sdk_streams(client: OpenAI) -> None:
    with client.responses.stream(**said("One two", {"refusal": "no"})) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert (deltas, final.output_text, final.model) == (["One", " two"], "One two", SLUG)


def test_an_upstream_is_sent_the_request_with_its_key_and_nothing_of_the_client_s(
    stack: LocalStack, upstream: ScriptedUpstream
) -> None:
    since = len(upstream.diary())
    body = said("x", stream=True, instructions="Be brief.", temperature=0.5, safety_identifier="s-1")
    ours = {"ib": {"tags": ["t"]}, "user": "alice", "metadata": {"a": "b"}, "store": False}
    headers = ["ib-user: bob", "ib-tags: nightly", "ib-session: s", "Cookie: a=b", "User-Agent: browser"]
    assert ask(stack, {**body, **ours}, *headers).status == 200
    (request,) = sent(upstream, since)
    assert request["headers"]["authorization"] == f"Bearer {upstream.key}"
    assert request["headers"]["host"] == f"127.0.0.1:{upstream.port}"
    known = {"host", "authorization", "content-type", "content-length", "accept", "accept-encoding", "x-request-id"}
    assert {name.lower() for name in request["headers"]} - {"traceparent", "tracestate"} <= known
    expected = {name: value for name, value in body.items() if name != "model"}
    assert request["body"] == {
        "model": "only",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 4096,
        **expected,
    }


HOSTED = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "tool_search_call",
    "compaction",
    "something_of_tomorrow",
]


def test_every_kind_of_item_and_event_passes_as_it_is(stack: LocalStack) -> None:
    items = [{"item": {"type": kind, "status": "completed", "action": {"né": [1.0, None]}}} for kind in HOSTED]
    unknown = {"event": {"type": "response.tomorrow.delta", "delta": "…", "n": 1e3}}
    steps = [{"reasoning": "I think"}, {"call": ["f", '{"a": 1}']}, {"custom": ["sh", "ls"]}, {"search": "q"}]
    body = said(*steps, *items, unknown, {"refusal": "no"}, "Hi", tools=[FUNCTION])
    events = events_of(ask(stack, {**body, "stream": True}))
    output = events[-1].data["response"]["output"]
    kinds = ["reasoning", "function_call", "custom_tool_call", "web_search_call", *HOSTED, "message", "message"]
    assert [item["type"] for item in output] == kinds
    assert [event.data["item"] for event in events if event.type == "response.output_item.done"] == output
    assert [event.data["delta"] for event in events if event.type == "response.tomorrow.delta"] == ["…"]
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert output[4]["action"] == {"né": [1.0, None]}
    whole = ask(stack, body).json()
    assert [item["type"] for item in whole["output"]] == kinds


def test_deltas_pass_byte_for_byte_however_they_come(stack: LocalStack) -> None:
    def deltas(reply: Reply) -> list[bytes]:
        frames = reply.body.split(b"\n\n")
        return [frame for frame in frames if b'"response.output_text.delta"' in frame]

    whole = deltas(ask(stack, said("naïve “quotes” 𝄞 end", stream=True)))
    pieces = deltas(ask(stack, said("naïve “quotes” 𝄞 end", {"split": 7}, stream=True)))
    assert len(whole) == len(pieces) == 4
    assert b'"delta": " \\u201cquotes\\u201d", "obfuscation": "xYz"}' in whole[1]
    for one, other in zip(whole, pieces, strict=True):
        assert one.partition(b'"output_index"')[2] == other.partition(b'"output_index"')[2]


def test_reasoning_comes_back_encrypted_and_is_carried_on(stack: LocalStack, upstream: ScriptedUpstream) -> None:
    (reasoning,) = ask(stack, said({"reasoning": "hm"})).json()["output"]
    assert reasoning["encrypted_content"].startswith("gAAAA")
    since = len(upstream.diary())
    turn = {"type": "message", "role": "user", "content": said("done")["input"]}
    assert ask(stack, {"model": SLUG, "input": [reasoning, turn]}).status == 200
    (request,) = sent(upstream, since)
    assert request["body"]["input"] == [reasoning, turn]


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (said("x", tools=[{"type": "file_search", "vector_store_ids": ["v"]}]), "unsupported_parameter", "tools[0]"),
        (said("x", tools=[{"type": "web_search"}]), "invalid_request", "max_tool_calls"),
        (said("x", background=True), "unsupported_parameter", "background"),
        ({**by_route(), "tools": [{"type": "web_search"}], "max_tool_calls": 1}, "unsupported_parameter", "tools[0]"),
    ],
    ids=["hosted", "search without a limit", "background", "no route certified"],
)
def test_what_has_no_route_is_refused(stack: LocalStack, body: dict[str, Any], code: str, param: str) -> None:
    reply = ask(stack, body)
    assert (reply.status, error_of(reply)["code"], error_of(reply)["param"]) == (400, code, param)


def test_a_search_with_a_limit_passes(stack: LocalStack, upstream: ScriptedUpstream) -> None:
    since = len(upstream.diary())
    reply = ask(stack, said({"search": "q"}, "found", tools=[{"type": "web_search"}], max_tool_calls=2))
    assert [item["type"] for item in reply.json()["output"]] == ["web_search_call", "message"]
    (request,) = sent(upstream, since)
    assert (request["body"]["tools"], request["body"]["max_tool_calls"]) == ([{"type": "web_search"}], 2)


def http(status: int, body: Any = f"<html>{WORDS}</html>", **headers: str) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"http": {"status": status, "body": text, "headers": {**headers}}}


def fault(code: str, **members: Any) -> dict[str, Any]:
    return {"error": {"message": WORDS, "type": "invalid_request_error", "code": code, "param": None, **members}}


BEFORE_A_HEAD: dict[str, tuple[list[Any], int, str]] = {
    "500 page": ([http(500, **{"content-type": "text/html"})], 503, "infer_backend_unavailable"),
    "503": ([http(503)], 503, "infer_backend_unavailable"),
    "429 with a time": ([http(429, **{"retry-after": "3"})], 503, "capacity_unavailable"),
    "429 without": ([http(429)], 503, "capacity_unavailable"),
    "no money": ([http(429, fault("insufficient_quota"))], 503, "infer_backend_unavailable"),
    "key refused": ([http(401, fault("invalid_api_key"))], 503, "infer_backend_unavailable"),
    "bad request": ([http(400, fault("invalid_value", param="input[0].x"))], 400, "invalid_request"),
    "too long": ([http(400, fault("context_length_exceeded"))], 400, "context_length_exceeded"),
    "moved": ([http(307, location=f"https://{WORDS}")], 503, "infer_backend_unavailable"),
    "reset": ([{"break": "reset"}], 503, "infer_backend_unavailable"),
    "closed": ([{"break": True}], 503, "infer_backend_unavailable"),
    "wrong length": ([WORDS, {"length": 10}], 503, "infer_backend_unavailable"),
    "gzip": ([WORDS, {"gzip": True}], 503, "infer_backend_unavailable"),
    "no JSON": ([http(200, WORDS)], 503, "infer_backend_unavailable"),
    "failed": ([{"error": {"code": "server_error", "message": WORDS}}], 503, "infer_backend_unavailable"),
}


@pytest.mark.usefixtures("served_before")
@pytest.mark.parametrize(("steps", "status", "code"), BEFORE_A_HEAD.values(), ids=BEFORE_A_HEAD)
def test_a_failure_is_a_plain_error_without_a_word_of_the_upstream(
    stack: LocalStack, upstream: ScriptedUpstream, steps: list[Any], status: int, code: str
) -> None:
    reply = ask(stack, said(*steps))
    assert (reply.status, error_of(reply)["code"]) == (status, code), reply.body
    told = reply.body.decode() + json.dumps(reply.headers)
    for hidden in (WORDS, "scripted", upstream.key, str(upstream.port), "native_", "x-upstream"):
        assert hidden not in told


EARLY: tuple[str, ...] = ("500 page", "429 with a time", "bad request", "gzip", "no JSON")


@pytest.mark.usefixtures("served_before")
@pytest.mark.parametrize("name", EARLY)
def test_a_stream_that_has_not_begun_fails_in_the_same_way(stack: LocalStack, name: str) -> None:
    steps, status, code = BEFORE_A_HEAD[name]
    reply = ask(stack, said(*steps, stream=True))
    assert (reply.status, error_of(reply)["code"]) == (status, code)


BREAKS: dict[str, list[Any]] = {
    "closed": [{"break": True}],
    "reset": [{"break": "reset"}],
    "no last event": [{"stop": True}],
    "error event": [{"error": {"code": "server_error", "message": WORDS}}],
    "no event": [{"raw": f"data: {{{WORDS}\n\n"}],
}


@pytest.mark.usefixtures("served_before")
@pytest.mark.parametrize("steps", BREAKS.values(), ids=BREAKS)
def test_a_stream_that_breaks_ends_with_stream_interrupted(stack: LocalStack, steps: list[Any]) -> None:
    reply = ask(stack, said("some words", {"sleep": 0.05}, *steps, stream=True))
    events = events_of(reply)
    types = [event.type for event in events]
    assert "response.output_text.delta" in types
    assert types[-1] == "error" and "response.completed" not in types and "response.failed" not in types
    assert events[-1].data["error"]["code"] == "stream_interrupted"
    assert WORDS not in reply.body.decode()


def test_a_stream_that_pauses_for_too_long_is_ended(stack: LocalStack) -> None:
    events = events_of(ask(stack, said("some words", {"hang": True}, model=REROUTED, stream=True)))
    assert events[-1].data["error"]["code"] == "stream_interrupted"


def test_an_answer_that_is_cut_is_no_failure(stack: LocalStack) -> None:
    events = events_of(ask(stack, said("cut", {"incomplete": "max_output_tokens"}, stream=True)))
    assert events[-1].type == "response.incomplete"
    assert events[-1].data["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_what_the_upstream_writes_beside_events_is_left_out(stack: LocalStack) -> None:
    noise: list[Any] = [{"raw": ": ping\n\n"}, "text", {"raw": ": ping\n\n"}]
    reply = ask(stack, said(*noise, stream=True))
    assert b"ping" not in reply.body
    _, violations = check_stream(reply.body)
    assert violations == []


@pytest.mark.usefixtures("served_before")
@pytest.mark.parametrize("steps", [["one", {"hang": True}], ["word " * 200_000]], ids=["silent", "writing"])
async def test_a_client_that_leaves_is_told_to_the_upstream(
    stack: LocalStack, upstream: ScriptedUpstream, steps: list[Any]
) -> None:
    since = len(upstream.diary())
    with OpenAI(base_url=stack.bureau_url, api_key=stack.project_key, max_retries=0) as client:
        stream = client.responses.create(**said(*steps), stream=True)
        for event in stream:
            if event.type == "response.output_text.delta":
                break
        stream.close()
    await eventually(lambda: any(entry.get("ended") == "client gone" for entry in upstream.diary()[since:]))


FAIL_FIRST = {
    "429 with a short time": [http(429, **{"retry-after": "1"})],
    "500": [http(500)],
    "502": [http(502)],
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("steps", FAIL_FIRST.values(), ids=FAIL_FIRST)
def test_the_next_route_answers_where_one_cannot(
    stack: LocalStack, upstream: ScriptedUpstream, steps: list[Any], stream: bool
) -> None:
    since = len(upstream.diary())
    reply = ask(stack, {**by_route(first=steps, second=["from the second"]), "stream": stream})
    assert reply.status == 200
    assert "from the second" in reply.body.decode()
    assert [request["body"]["model"] for request in sent(upstream, since)] == ["first", "second"]


@pytest.mark.parametrize("stream", [False, True])
def test_the_next_route_answers_where_nobody_is_there(stack: LocalStack, stream: bool) -> None:
    reply = ask(stack, said("from the second", model=REROUTED, stream=stream))
    assert (reply.status, b"from" in reply.body) == (200, True)
    told = receipt(stack, stack.project_key, reply.headers["x-request-id"], "completed")
    attempts = [(attempt["route"], attempt["outcome"], attempt["status"]) for attempt in told["attempts"]]
    assert attempts[1] == ("scripted", "completed", 200)
    assert attempts[0][:2] == ("gone", "infer_backend_unavailable")
    assert (told["usage"]["input_tokens"], told["usage"]["output_tokens"]) == (11, 3)


@pytest.mark.parametrize(
    ("steps", "status"), [([http(429, **{"retry-after": "600"})], 503), ([http(400)], 400)], ids=["long", "400"]
)
def test_what_another_route_would_not_mend_is_told_at_once(
    stack: LocalStack, upstream: ScriptedUpstream, steps: list[Any], status: int
) -> None:
    since = len(upstream.diary())
    assert ask(stack, by_route(first=steps, second=["no"])).status == status
    assert [request["body"]["model"] for request in sent(upstream, since)] == ["first"]


def test_a_request_goes_only_to_a_route_that_is_certified_for_it(stack: LocalStack, upstream: ScriptedUpstream) -> None:
    since = len(upstream.diary())
    reply = ask(stack, {**by_route(first=["no"], second=[{"call": ["f", "{}"]}]), "tools": [FUNCTION]})
    assert reply.json()["output"][0]["type"] == "function_call"
    assert [request["body"]["model"] for request in sent(upstream, since)] == ["second"]


def test_a_stored_conversation_is_sent_whole(client: OpenAI, upstream: ScriptedUpstream) -> None:
    first = client.responses.create(**said({"reasoning": "hm"}, "One"), store=True)
    since = len(upstream.diary())
    second = client.responses.create(**said("Two"), previous_response_id=first.id)
    (request,) = sent(upstream, since)
    assert (request["body"]["store"], "previous_response_id" in request["body"]) == (False, False)
    question, *answer, turn = request["body"]["input"]
    assert [item["id"] for item in answer] == [item.id for item in first.output]
    assert answer[0]["encrypted_content"]
    assert question["content"] == [{"type": "input_text", "text": said({"reasoning": "hm"}, "One")["input"]}]
    assert turn["content"] == said("Two")["input"]
    assert second.previous_response_id == first.id
    kept = client.responses.retrieve(second.id)
    assert (kept.output_text, kept.model, kept.previous_response_id) == ("Two", SLUG, first.id)


def test_a_conversation_is_compacted_by_the_upstream(client: OpenAI, upstream: ScriptedUpstream) -> None:
    since = len(upstream.diary())
    compacted = client.responses.compact(model=SLUG, input="A long conversation.")
    (item,) = compacted.output
    assert item.type == "compaction" and item.encrypted_content.startswith("gAAAA")
    (request,) = sent(upstream, since)
    assert (request["path"], request["body"]["model"]) == ("/v1/responses/compact", "only")
    turn: Any = [item.to_dict(), {"role": "user", "content": said("On")["input"]}]
    assert client.responses.create(model=SLUG, input=turn).output_text == "On"


def test_the_node_s_surface_says_that_a_gateway_answered(stack: LocalStack) -> None:
    body = {**said("Hello"), "model": NATIVE_SCRIPTED.name}
    reply = ask(stack, body, path="/v1/infer/responses", key=stack.api_key)
    assert reply.status == 200, reply.body
    answer = reply.json()
    assert (answer["model"], answer["b3os"]["route"]) == (NATIVE_SCRIPTED.name, "gateway")
    assert answer["output"][0]["content"][0]["text"] == "Hello"
    events = events_of(ask(stack, {**body, "stream": True}, path="/v1/infer/responses", key=stack.api_key))
    assert events[-1].data["response"]["b3os"]["route"] == "gateway"


def test_llama_cpp_s_server_answers(client: OpenAI, llama: LlamaServer) -> None:
    response = client.responses.create(model=LLAMA, input="Say hi.", max_output_tokens=8, temperature=0)
    assert response.output_text
    assert response.usage is not None
    assert (response.model, response.usage.output_tokens) == (LLAMA, 8)
    with client.responses.create(
        model=LLAMA, input="Say hi.", max_output_tokens=8, temperature=0, stream=True
    ) as stream:
        events = list(stream)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == response.output_text
    assert events[-1].type == "response.completed"
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model=LLAMA, input="Hi", tools=[FUNCTION])
    assert refused.value.code == "unsupported_parameter"


def test_nothing_that_is_secret_is_written_down(stack: LocalStack, upstream: ScriptedUpstream) -> None:
    files = [path for path in stack.run_dir.rglob("*") if path.is_file() and not path.name.endswith(".key")]
    assert (stack.run_dir / "envoy.yaml") in files
    for path in files:
        assert upstream.key.encode() not in path.read_bytes(), path


@dataclass(frozen=True)
class Ourselves:
    """A stack in the place of an upstream."""

    stack: LocalStack
    key_file: Path

    @property
    def section(self) -> dict[str, Any]:
        """The member of ``upstreams`` in the configuration of another one."""
        self.key_file.touch(mode=0o600)
        self.key_file.write_text(self.stack.project_key)
        return {"name": "ourselves", "url": self.stack.bureau_url, "key_file": str(self.key_file)}


def test_another_of_us_is_an_upstream_like_others(stack: LocalStack, triton: Triton, tmp_path: Path) -> None:
    routes = [{"upstream": "ourselves", "model": "local/scripted", "features": ["text.format", "tools"]}]
    with (
        LocalStack(
            tmp_path,
            models=[SCRIPTED],
            native_models=[NativeModel("relayed", routes, 32768)],
            upstreams=[Ourselves(stack, tmp_path / "ourselves.key")],
            workers=1,
            triton_address=f"127.0.0.1:{triton.grpc_port}",
        ) as front,
        OpenAI(base_url=front.bureau_url, api_key=front.project_key, max_retries=0) as client,
    ):
        body: dict[str, Any] = {**said("One", " two"), "model": "local/relayed"}
        with client.responses.stream(**body) as stream:
            deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        assert ("".join(deltas), final.output_text, final.model) == ("One two", "One two", "local/relayed")
        first = client.responses.create(**body, store=True)
        assert first.store
        second = client.responses.create(**{**body, "input": said("again")["input"]}, previous_response_id=first.id)
        assert second.output_text == "again"
        assert second.usage is not None and first.usage is not None
        assert second.usage.input_tokens > first.usage.input_tokens
        with pytest.raises(openai.InternalServerError) as failed:
            client.responses.create(**{**said({"error": "cuda failure"}), "model": "local/relayed"})
        assert failed.value.code == "infer_backend_unavailable"
