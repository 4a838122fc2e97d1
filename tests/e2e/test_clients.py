"""Real clients with only the base URL changed, on the real chat model: text, usage and typed errors."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import openai
import pytest

from stack.local import SMOLLM2, LocalStack
from stack.setup import NODE, NODE_TESTS

QUESTION = "What is the capital of France?"
SETTINGS: dict[str, Any] = {
    "model": SMOLLM2.name,
    "input": QUESTION,
    "instructions": "You are a helpful assistant.",
    "temperature": 0,
    "max_output_tokens": 20,
}


@pytest.fixture
def sdk(stack: LocalStack) -> openai.OpenAI:
    return openai.OpenAI(base_url=stack.url, api_key=stack.api_key)


def check_usage(usage: Any) -> None:
    assert usage.input_tokens > 10
    assert 0 < usage.output_tokens <= 20
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.output_tokens_details.reasoning_tokens == 0


def test_openai_python_creates_an_answer(sdk: openai.OpenAI) -> None:
    response = sdk.responses.create(**SETTINGS)
    assert "Paris" in response.output_text
    assert response.id.startswith("resp_")
    check_usage(response.usage)


def test_openai_python_streams_the_same_answer(sdk: openai.OpenAI) -> None:
    whole = sdk.responses.create(**SETTINGS)
    events = list(sdk.responses.create(**SETTINGS, stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    final = events[-1].response
    assert final.usage.output_tokens == whole.usage.output_tokens
    check_usage(final.usage)


def test_openai_pythons_stream_helper_accepts_every_event(sdk: openai.OpenAI) -> None:
    with sdk.responses.stream(**{**SETTINGS, "max_output_tokens": 50}) as stream:
        types = [event.type for event in stream]
        final = stream.get_final_response()
    assert types[0] == "response.created"
    assert final.status == "completed"
    assert "Paris" in final.output_text


def test_openai_python_raises_typed_errors(stack: LocalStack, sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        sdk.responses.create(model="gpt-5", input="hi")
    assert (unknown.value.code, unknown.value.param) == ("model_not_available", "model")
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=stack.url, api_key="b3os_sk_wrong").responses.create(**SETTINGS)
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.responses.create(**SETTINGS, previous_response_id="resp_1")
    assert refused.value.code == "unsupported_parameter"


def test_openai_python_raises_when_a_stream_fails(sdk: openai.OpenAI) -> None:
    steps = json.dumps(["some", {"error": "boom"}])
    stream = sdk.responses.create(model="scripted", input=f"script:{steps}", stream=True)
    with pytest.raises(openai.APIError, match="The model failed"):
        list(stream)


def test_openai_node_creates_and_streams(stack: LocalStack) -> None:
    done = subprocess.run(
        [NODE, "openai.mjs", stack.url, stack.api_key, SMOLLM2.name, QUESTION],
        cwd=NODE_TESTS,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["whole"]["text"]
    assert seen["whole"]["text"] == seen["raw"]["text"] == seen["final"]["text"]
    # The second answer finds its prompt in the model's cache, so only the counts are the same.
    for count in ("input_tokens", "output_tokens", "total_tokens"):
        assert seen["whole"]["usage"][count] == seen["final"]["usage"][count]
    assert (seen["raw"]["types"][0], seen["raw"]["types"][-1]) in {
        ("response.created", "response.completed"),
        ("response.created", "response.incomplete"),
    }
    assert seen["failure"] == {
        "name": "NotFoundError",
        "status": 404,
        "code": "model_not_available",
        "param": "model",
    }


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge", "--http2"])
@pytest.mark.parametrize("stream", [False, True])
def test_curl_gets_an_answer_over_both_http_versions(stack: LocalStack, version: str, stream: bool) -> None:
    command = ["curl", "--silent", "--show-error", "--no-buffer", "--fail-with-body", version]
    headers = ["--header", f"Authorization: Bearer {stack.api_key}", "--header", "Content-Type: application/json"]
    body = json.dumps({**SETTINGS, "stream": stream})
    done = subprocess.run(
        [*command, *headers, "--data", body, f"{stack.url}/responses"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Paris" in done.stdout
    assert ("event: response.created" in done.stdout) is stream
