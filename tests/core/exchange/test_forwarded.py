"""What a client's request may tell the upstream about itself."""

from __future__ import annotations

import pytest

from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.forwarded import forwarded_headers
from tests.core import kit

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
STATE = "vendor=value,other=1"


def test_id_and_trace_are_forwarded_and_nothing_else() -> None:
    headers = {"x-request-id": "r-1", "traceparent": PARENT, "tracestate": STATE}
    assert forwarded_headers({**headers, "cookie": "secret", "authorization": "Bearer key"}) == headers


@pytest.mark.parametrize("parent", [PARENT, "01" + PARENT[2:], "01" + PARENT[2:] + "-more"])
def test_a_trace_of_any_version_is_forwarded(parent: str) -> None:
    assert forwarded_headers({"traceparent": parent}) == {"traceparent": parent}


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "nonsense",
        PARENT.upper(),
        PARENT + "-more",
        f"{PARENT},{PARENT}",
        PARENT + "\n",
        "ff" + PARENT[2:],
        "00-" + "0" * 32 + PARENT[35:],
        PARENT[:36] + "0" * 16 + "-01",
        "01" + PARENT[2:] + "-" + "x" * 1000,
    ],
)
def test_a_malformed_trace_is_left_out_with_its_state(parent: str) -> None:
    assert forwarded_headers({"traceparent": parent, "tracestate": STATE}) == {}


@pytest.mark.parametrize("state", ["", "v=" + "x" * 511, "v=\x01", "v=1\r\nx-injected: 1", "v=é"])
def test_a_state_that_is_too_long_or_no_text_is_left_out(state: str) -> None:
    assert forwarded_headers({"traceparent": PARENT, "tracestate": state}) == {"traceparent": PARENT}


def test_a_state_of_the_standards_length_is_forwarded() -> None:
    state = "v=" + "x" * 510
    assert forwarded_headers({"traceparent": PARENT, "tracestate": state})["tracestate"] == state


@pytest.mark.parametrize("request_id", ["", "a b", "a\r\nb", "x" * 257, "é"])
def test_an_id_that_is_none_is_left_out(request_id: str) -> None:
    assert forwarded_headers({"x-request-id": request_id}) == {}


def test_the_call_has_them() -> None:
    (call,) = kit.handle(kit.exchange(), kit.request())
    assert isinstance(call, CallUpstream)
    assert call.headers == {"x-request-id": "r-1"}
