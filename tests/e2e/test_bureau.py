"""The bureau surface beside the node's, behind one Envoy: its clients, its keys, its errors, Envoy's own replies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from conformance import PROBES, Endpoint, check_response, check_stream
from conformance.stored import STORED
from sidecar.identity.secret import Kind, mint
from stack.first_key import command
from stack.local import LocalStack
from tests.e2e.bureau import SLUG, said
from tests.e2e.raw_http import Reply, exchange, request

PATH = "/v1/responses"
MEMBERS = ["message", "type", "param", "code", "request_id"]


@pytest.fixture(scope="module")
def client(stack: LocalStack) -> Iterator[OpenAI]:
    with OpenAI(base_url=stack.bureau_url, api_key=stack.project_key, max_retries=0) as client:
        yield client


def ask(
    stack: LocalStack, body: dict[str, Any] | bytes, *headers: str, path: str = PATH, key: str | None = None
) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    key = stack.project_key if key is None else key
    sent = request("POST", path, key=key or None, headers=["Content-Type: application/json", *headers], body=content)
    return exchange(stack.port, [sent])


def error_of(reply: Reply) -> dict[str, Any]:
    """The error, after a look that it has the surface's shape."""
    error: dict[str, Any] = reply.json()["error"]
    assert sorted(error) == sorted(MEMBERS)
    assert error["request_id"] == reply.headers["x-request-id"]
    assert "x-local-reply" not in reply.headers
    return error


def test_the_sdk_gets_a_response_with_openai_s_members(client: OpenAI) -> None:
    raw = client.responses.with_raw_response.create(**said("Hello"), metadata={"a": "b"})
    assert check_response(json.loads(raw.text)) == []
    response = raw.parse()
    assert response.output_text == "Hello"
    assert (response.model, response.store, response.max_output_tokens) == (SLUG, False, 4096)
    assert (response.service_tier, response.metadata) == ("default", {"a": "b"})
    assert response.model_extra is not None and "b3os" not in response.model_extra


def test_the_sdk_streams(client: OpenAI) -> None:
    with client.responses.stream(**said("One", " two")) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert events[0].type == "response.created"
    assert final.output_text == "One two"


def test_the_cpu_model_answers_by_its_vendor_s_name(client: OpenAI) -> None:
    response = client.responses.create(model="smollm2-135m", input="Hello", max_output_tokens=4)
    assert response.model == "local/smollm2-135m"
    assert response.usage is not None and response.usage.output_tokens > 0


def test_models_are_listed_and_found(stack: LocalStack, client: OpenAI) -> None:
    listed = {model.id: model.owned_by for model in client.models.list()}
    assert list(listed) == stack.slugs()
    assert set(listed.values()) == {"local", "huggingface", "scripted"}
    assert client.models.retrieve("scripted").id == SLUG


def test_what_is_not_there_yet_is_refused(client: OpenAI) -> None:
    for parameters in ({"background": True}, {"conversation": "conv_1"}, {"max_tool_calls": 1}):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(**said(), **parameters)
        assert (refused.value.code, refused.value.param) == ("unsupported_parameter", next(iter(parameters)))


@pytest.mark.parametrize(
    ("name", "status", "code"), [("acme/none", 404, "model_not_available"), ("none", 404, "model_not_available")]
)
def test_a_model_that_is_not_in_the_catalog(client: OpenAI, name: str, status: int, code: str) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.responses.create(model=name, input="Hello")
    assert (refused.value.status_code, refused.value.code, refused.value.param) == (status, code, "model")


def test_a_key_is_taken_in_either_header_and_on_its_surface_only(stack: LocalStack) -> None:
    body = said("x")
    assert ask(stack, body).status == 200
    assert ask(stack, body, f"x-api-key: {stack.project_key}", key="").status == 200
    both = error_of(ask(stack, body, f"x-api-key: {stack.project_key}"))
    assert both["message"] == "More than one credential was sent; send exactly one."
    for key in (stack.api_key, stack.project_key[:-1], mint(Kind.PROJECT).text):
        reply = ask(stack, body, key=key)
        assert (reply.status, error_of(reply)["code"]) == (401, "unauthorized")
    on_node = ask(stack, {**body, "model": "scripted"}, path="/v1/infer/responses", key=stack.project_key)
    assert (on_node.status, on_node.error()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("line", "content_type", "status", "code"),
    [
        ("GET /v1/responses", None, 405, "method_not_allowed"),
        ("POST /v1/models", None, 405, "method_not_allowed"),
        ("GET /v1/nothing", None, 404, "not_found"),
        ("GET /v1/responses/compact", None, 404, "not_found"),
        ("PUT /v1/responses/resp_1", "application/json", 405, "method_not_allowed"),
        ("POST /v1/responses/resp_1/input_items", "application/json", 405, "method_not_allowed"),
        ("POST /v1/responses", "application/grpc", 415, "unsupported_media_type"),
        ("POST /v1/responses", "text/plain", 415, "unsupported_media_type"),
    ],
)
def test_envoy_s_own_replies_have_the_shape(
    stack: LocalStack, line: str, content_type: str | None, status: int, code: str
) -> None:
    method, path = line.split()
    headers = [f"Content-Type: {content_type}"] if content_type else []
    sent = request(method, path, key=stack.project_key, headers=headers, body=b"{}" if content_type else b"")
    reply = exchange(stack.port, [sent])
    assert (reply.status, error_of(reply)["code"]) == (status, code)
    keyless = exchange(stack.port, [request(method, path, headers=headers)])
    assert (keyless.status, error_of(keyless)["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("line", ["GET /v1/infer/responses", "GET /v1/infer/nothing", "GET /nothing"])
def test_the_node_s_have_its_own(stack: LocalStack, line: str) -> None:
    method, path = line.split()
    for key in (None, stack.api_key):
        assert "request_id" not in exchange(stack.port, [request(method, path, key=key)]).error()


def test_a_body_above_a_mebibyte_is_told_both_numbers(stack: LocalStack) -> None:
    body = json.dumps(said(instructions="x" * (1 << 20))).encode()
    reply = ask(stack, body)
    assert (reply.status, error_of(reply)["code"]) == (413, "payload_too_large")
    assert str(len(body)) in error_of(reply)["message"]
    assert "this endpoint accepts at most 1048576" in error_of(reply)["message"]


def test_a_custom_tool_is_called(client: OpenAI) -> None:
    call = '<tool_call>{"name": "shell", "arguments": {"input": "ls \\"a\\""}}</tool_call>'
    tool: Any = {"type": "custom", "name": "shell"}
    with client.responses.stream(**said(call), tools=[tool]) as stream:
        deltas = [event.delta for event in stream if event.type == "response.custom_tool_call_input.delta"]
        (item,) = stream.get_final_response().output
    assert item.type == "custom_tool_call"
    assert (item.name, item.input, "".join(deltas)) == ("shell", 'ls "a"', 'ls "a"')
    output: Any = {"type": "custom_tool_call_output", "call_id": item.call_id, "output": "a"}
    sent: Any = [item.to_dict(), output, {"role": "user", "content": said("done")["input"]}]
    assert client.responses.create(model=SLUG, input=sent, tools=[tool]).output_text == "done"


def test_the_client_s_own_tools_are_called(client: OpenAI) -> None:
    calls = (
        '<tool_call>{"name": "local_shell", "arguments": {"command": ["cat", "a.py"]}}</tool_call>'
        '<tool_call>{"name": "apply_patch", "arguments": '
        '{"type": "update_file", "path": "a.py", "diff": "@@\\n-a\\n+b\\n"}}</tool_call>'
    )
    tools: Any = [{"type": "local_shell"}, {"type": "apply_patch"}]
    with client.responses.stream(**said(calls), tools=tools) as stream:
        added = [event.item.type for event in stream if event.type == "response.output_item.added"]
        shell, patch = stream.get_final_response().output
    assert added == ["local_shell_call", "apply_patch_call"]
    assert shell.type == "local_shell_call" and patch.type == "apply_patch_call"
    assert shell.action.command == ["cat", "a.py"]
    assert patch.operation.type == "update_file" and patch.operation.diff == "@@\n-a\n+b\n"
    outputs: Any = [
        {"type": "local_shell_call_output", "call_id": shell.call_id, "output": "a"},
        {"type": "apply_patch_call_output", "call_id": patch.call_id, "status": "completed"},
    ]
    sent: Any = [shell.to_dict(), patch.to_dict(), *outputs, {"role": "user", "content": said("done")["input"]}]
    assert client.responses.create(model=SLUG, input=sent, tools=tools).output_text == "done"


def test_a_conversation_is_compacted_and_goes_on(stack: LocalStack, client: OpenAI) -> None:
    spoken: Any = [{"role": "user", "content": said("It was ", "greeted.")["input"]}]
    compacted = client.responses.compact(model=SLUG, input=spoken, instructions="Be brief.")
    message, item = [dict(item.to_dict()) for item in compacted.output]
    assert (compacted.object, message["role"], item["type"]) == ("response.compaction", "user", "compaction")
    assert "greeted" not in json.dumps(item)
    assert compacted.usage.output_tokens > 0
    more: Any = {"role": "user", "content": said("done")["input"]}
    sent: Any = [message, item, more]
    assert client.responses.create(model=SLUG, input=sent, max_output_tokens=50).output_text == "done"
    with client.responses.stream(model=SLUG, input=[*sent, {"type": "compaction_trigger"}]) as stream:
        types = [event.type for event in stream]
        (again,) = stream.get_final_response().output
    assert "response.compaction.compacting" in types
    assert again.type == "compaction" and again.encrypted_content != item["encrypted_content"]
    changed: Any = [{**item, "encrypted_content": str(item["encrypted_content"])[:-8] + "AAAAAAAA"}, more]
    reply = ask(stack, {"model": SLUG, "input": changed})
    assert (reply.status, error_of(reply)["param"]) == (400, "input[0].encrypted_content")


def test_a_stored_conversation_is_compacted(stack: LocalStack, client: OpenAI) -> None:
    first = client.responses.create(**said("hello"), store=True)
    key = {"Idempotency-Key": f"compact-{first.id}"}
    compact = partial(client.responses.with_raw_response.compact, previous_response_id=first.id, extra_headers=key)
    raw = compact(model=SLUG)
    compacted = raw.parse()
    assert compact(model=SLUG).text == raw.text
    path = f"/v1/requests/{raw.headers['x-request-id']}"
    receipt = exchange(stack.port, [request("GET", path, key=stack.project_key)]).json()
    assert receipt["endpoint"] == "responses.compact"
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(compacted.id)


def test_a_stream_that_breaks_ends_with_stream_interrupted_alone(stack: LocalStack) -> None:
    reply = ask(stack, said("some", {"error": "cuda failure"}, stream=True))
    events, violations = check_stream(reply.body)
    assert not [violation for violation in violations if violation.rule != "answer-failed"]
    assert [event.type for event in events][-2:] == ["response.output_text.delta", "error"]
    error = events[-1].data["error"]
    assert (error["code"], error["request_id"]) == ("stream_interrupted", reply.headers["x-request-id"])


def test_a_failure_before_the_first_token_is_a_plain_error(stack: LocalStack) -> None:
    reply = ask(stack, said({"error": "maximum queue size"}, stream=True))
    assert (reply.status, error_of(reply)["code"]) == (503, "capacity_unavailable")


def test_end_user_and_tags_are_recorded(stack: LocalStack) -> None:
    headers = ["ib-user: alice", "ib-tags: team:support, nightly", "ib-session: s-1", "X-Client-Request-ID: mine"]
    reply = ask(stack, said("x", ib={"tags": ["extra"], "pool": ["a", "b"]}, user="bob"), *headers)
    assert reply.status == 200
    record = recorded(stack, reply.headers["x-request-id"])
    assert (record["end_user"], record["tags"]) == ("alice", "team:support,nightly,extra")
    assert record["model"] == "scripted"


def recorded(stack: LocalStack, request_id: str) -> dict[str, Any]:
    """The usage record of a request, once it is there."""
    from sqlalchemy import select

    from sidecar.config.load import load, read_store_url
    from sidecar.store import connect
    from sidecar.store.tables import usage_records

    url, deadline = read_store_url(load(stack.sidecar.config).store), time.monotonic() + 30
    while True:
        with connect(url) as connection:
            wanted = select(usage_records).where(usage_records.c.request_id == request_id)
            row = connection.execute(wanted).mappings().one_or_none()
        if row is not None:
            return dict(row)
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_key_of_a_project_is_made_by_a_command(stack: LocalStack) -> None:
    options = ("--project", "support", "--environment", "test")
    made = command(stack.sidecar.config, "keys", "create", "local", *options)
    assert (made["project"], made["environment"], made["secret"][:8]) == ("support", "test", "ib_live_")
    assert ask(stack, said("x"), key=made["secret"]).status == 200


def test_the_document_is_the_one_that_is_kept(stack: LocalStack) -> None:
    reply = exchange(stack.port, [request("GET", "/v1/openapi.json")])
    kept = Path(__file__).parents[2] / "docs" / "openapi.bureau.json"
    assert reply.json() == json.loads(kept.read_text())


def test_verify_finds_nothing_but_what_a_script_cannot_do(stack: LocalStack) -> None:
    """The scripted model makes no calls by itself, and keeps to no schema."""
    results = list(Endpoint(stack.bureau_url, stack.project_key).results(SLUG))
    needs_more = {probe.name for probe in PROBES if probe.optional}
    faults = {result.probe: result.violations for result in results if not result.sound}
    assert [result.outcome for result in results[-len(STORED) :]] == ["ok"] * len(STORED)
    assert [result.probe for result in results[-len(STORED) :]] == [probe.name for probe in STORED]
    assert not faults.keys() - needs_more, faults
