"""Triton's failures become the one right error, and none of Triton's words reach the client."""

import pytest

from sidecar.backends.triton.errors import classify_end, classify_message, outage_of
from sidecar.backends.triton.frames import GrpcStatus


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[request id: <id_unknown>] Exceeds maximum queue size", "capacity_unavailable"),
        ("Maximum queue size of 8 has been reached, please try again later", "capacity_unavailable"),
        ("Request timeout expired", "capacity_unavailable"),
        ("Request for unknown model: 'nope' is not found", "infer_backend_unavailable"),
        ("Request for unknown model: 'm' has no available versions", "infer_backend_unavailable"),
        ("Stub process 'scripted_0_0' is not healthy.", "infer_backend_unavailable"),
        ("Model is unavailable due to unhealthy vLLM engine", "infer_backend_unavailable"),
        ("Prompt length (3000) exceeds maximum input length (2048).", "context_length_exceeded"),
        ("the request exceeds the available context size (exceed_context_size_error)", "context_length_exceeded"),
        ("The decoder prompt (length 9) is longer than the maximum model length of 8", "context_length_exceeded"),
        ("This model's maximum context length is 8 tokens", "context_length_exceeded"),
        (
            "in ensemble 'e', due to: Prompt length (9) exceeds maximum input length (8)",
            "context_length_exceeded",
        ),
        ("Can't allocate new blocks. No free blocks left.", "capacity_unavailable"),
        ("CUDA out of memory", "capacity_unavailable"),
        ("Request cancelled by client", "infer_backend_unavailable"),
        ("'NoneType' object has no attribute 'lora_name'", "infer_backend_unavailable"),
        ("Traceback (most recent call last): secret prompt", "infer_backend_unavailable"),
    ],
)
def test_messages_are_told_apart_by_their_text(text: str, code: str) -> None:
    error = classify_message(text)
    assert error.code == code
    assert text not in error.message
    assert error.words == text


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Exceeds maximum queue size", "queue_full"),
        ("Request for unknown model: 'm' is not found", "not_loaded"),
        ("[request id: 1] unexpected inference input 'input_ids' for model 'm'", "other_tensors"),
        ("[request id: 1] expected 3 inputs but got 7 inputs for model 'm'", "other_tensors"),
        ("inference input 'seed' data-type is 'UINT64', but model 'm' expects 'INT64'", "other_tensors"),
        ("unexpected shape for input 'x' for model 'm'. Expected [-1,1], got [1]", "other_tensors"),
        ("Stub process 'm' is not healthy.", "unhealthy"),
        ("Server is shutting down", "stopping"),
        ("Request was cancelled", "cancelled"),
        ("boom", "failed"),
    ],
)
def test_logs_are_told_the_class_of_a_failure(text: str, failure: str) -> None:
    assert classify_message(text).failure == failure


@pytest.mark.parametrize(
    ("http_status", "grpc", "status"),
    [
        (None, None, 503),
        (200, None, 503),
        (200, GrpcStatus(0, ""), 503),
        (504, GrpcStatus(14, "stream timeout"), 503),
        (200, GrpcStatus(4, "deadline"), 503),
        (503, GrpcStatus(14, "no healthy upstream"), 503),
        (200, GrpcStatus(13, "Exceeds maximum queue size"), 503),
        (200, GrpcStatus(3, "Prompt length (9) exceeds maximum input length (8)"), 400),
    ],
)
def test_an_early_end_has_the_truer_status(http_status: int | None, grpc: GrpcStatus | None, status: int) -> None:
    assert classify_end(http_status, grpc).status == status


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("out_of_memory", "capacity_unavailable"),
        ("timeout", "infer_backend_unavailable"),
        ("prompt_too_long", "infer_backend_unavailable"),
        ("of another release", "infer_backend_unavailable"),
    ],
)
def test_who_is_refused_for_a_failure_that_others_have_met_may_try_again(failure: str, code: str) -> None:
    outage = outage_of(failure)
    assert (outage.code, outage.param) == (code, None)
    assert outage.message.endswith("try again shortly.")
