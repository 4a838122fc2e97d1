"""Errors: what a code means for a client that may try again, and for a stream that has begun."""

import json

import pytest

from sidecar.responses.errors import CODES, OPENAI_FAILED_CODES, ApiError


@pytest.mark.parametrize("code", CODES)
def test_a_failed_response_has_a_code_of_openai_s(code: str) -> None:
    assert ApiError(code, "").failed_code in OPENAI_FAILED_CODES


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        ("infer_backend_unavailable", "server_error"),
        ("capacity_unavailable", "server_error"),
        ("internal", "server_error"),
        ("rate_limited", "rate_limit_exceeded"),
        ("context_length_exceeded", "invalid_prompt"),
    ],
)
def test_failed_codes(code: str, failed: str) -> None:
    assert ApiError(code, "").failed_code == failed


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ApiError("infer_backend_unavailable", ""), {"retry-after": "5"}),
        (ApiError("infer_backend_unavailable", "", retry=False), {"x-should-retry": "false"}),
        (ApiError("infer_backend_unavailable", "", retry=False, retry_after=9), {"x-should-retry": "false"}),
        (ApiError("rate_limited", "", retry_after=9), {"retry-after": "9"}),
        (ApiError("quota_exceeded", ""), {"x-should-retry": "false"}),
        (ApiError("invalid_request", ""), {}),
        (ApiError("method_not_allowed", "", allow="GET, POST"), {"allow": "GET, POST"}),
    ],
)
def test_a_client_is_told_whether_to_try_again(error: ApiError, advice: dict[str, str]) -> None:
    reply = error.reply()
    assert reply.headers == {"content-type": "application/json", **advice}
    assert reply.status == CODES[error.code].status


def test_an_error_body_has_all_members_and_those_of_its_surface() -> None:
    error = ApiError("not_found", "gone")
    four = {"message": "gone", "type": "invalid_request_error", "param": None, "code": "not_found"}
    assert json.loads(error.reply().body) == {"error": four}
    assert json.loads(error.reply({**four, "request_id": "r"}).body) == {"error": {**four, "request_id": "r"}}
