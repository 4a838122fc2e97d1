"""What an upstream refuses or fails at, in our words, and whether another route may do better."""

from __future__ import annotations

import pytest

from sidecar.backends.native.failures import refusal_of
from sidecar.responses.json_text import Json


def error(**members: object) -> Json:
    return {"error": {"message": "key sk-1 at api.example", **members}}


CASES: dict[str, tuple[int | None, dict[str, str], Json, str, str, bool]] = {
    "nobody there": (None, {}, {}, "upstream_unreachable", "infer_backend_unavailable", True),
    "Envoy found nobody": (
        503,
        {"x-local-reply": "503"},
        {},
        "upstream_unreachable",
        "infer_backend_unavailable",
        True,
    ),
    "Envoy gave up": (504, {"x-local-reply": "504"}, {}, "upstream_timeout", "infer_backend_unavailable", True),
    "its gateway gave up": (504, {}, {}, "upstream_timeout", "infer_backend_unavailable", True),
    "a page": (500, {"content-type": "text/html"}, {}, "upstream_error", "infer_backend_unavailable", True),
    "a status nobody knows": (599, {}, {}, "upstream_error", "infer_backend_unavailable", True),
    "limited for a moment": (429, {"retry-after": "2"}, {}, "upstream_limited", "capacity_unavailable", True),
    "in milliseconds": (429, {"retry-after-ms": "1500"}, {}, "upstream_limited", "capacity_unavailable", True),
    "limited for long": (429, {"retry-after": "60"}, {}, "upstream_limited", "capacity_unavailable", False),
    "until a date": (429, {"retry-after": "Wed, 21 Oct"}, {}, "upstream_limited", "capacity_unavailable", False),
    "no money": (
        429,
        {},
        error(code="insufficient_quota"),
        "upstream_account",
        "infer_backend_unavailable",
        False,
    ),
    "a wrong key": (401, {}, error(code="invalid_api_key"), "upstream_key", "infer_backend_unavailable", False),
    "a forbidden key": (403, {}, {}, "upstream_key", "infer_backend_unavailable", False),
    "no such model": (404, {}, {}, "upstream_no_model", "infer_backend_unavailable", False),
    "too large": (413, {}, {}, "upstream_too_large", "payload_too_large", False),
    "too long": (
        400,
        {},
        error(code="context_length_exceeded"),
        "upstream_too_long",
        "context_length_exceeded",
        False,
    ),
    "refused": (400, {}, error(type="invalid_request_error"), "upstream_refused", "invalid_request", False),
    "refused in other words": (422, {}, {"detail": "no"}, "upstream_refused", "invalid_request", False),
    "sent elsewhere": (
        302,
        {"location": "http://x"},
        {},
        "upstream_not_its_protocol",
        "infer_backend_unavailable",
        False,
    ),
}


@pytest.mark.parametrize(("status", "headers", "body", "failure", "code", "elsewhere"), CASES.values(), ids=CASES)
def test_a_refusal_has_its_class(
    status: int | None, headers: dict[str, str], body: Json, failure: str, code: str, elsewhere: bool
) -> None:
    refusal = refusal_of(status, headers, body)
    assert (refusal.error.failure, refusal.error.code, refusal.elsewhere) == (failure, code, elsewhere)
    told = str(refusal.error.fields())
    assert "sk-1" not in told
    assert "api.example" not in told


def test_how_long_to_wait_is_passed_on() -> None:
    assert refusal_of(429, {"retry-after": "7"}, {}).error.retry_after == 7
    assert refusal_of(429, {"retry-after-ms": "100"}, {}).error.retry_after == 1


@pytest.mark.parametrize(
    ("param", "told"),
    [
        ("input[0].content[1].type", "input[0].content[1].type"),
        ("text.format", "text.format"),
        ("see https://x", None),
        ("a" * 500, None),
        (7, None),
    ],
)
def test_only_a_path_is_told_of_what_was_refused(param: object, told: str | None) -> None:
    assert refusal_of(400, {}, error(type="invalid_request_error", param=param)).error.param == told
