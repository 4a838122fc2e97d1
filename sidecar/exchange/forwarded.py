"""Which headers of the client's request the upstream sees: its id, and the trace that it belongs to.

A client's headers are data. Whatever the standard does not allow is left out, so that it can harm nobody further on.
Source: W3C Trace Context.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Later versions may add members; "ff", and ids of zeros alone, are invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    r"(?P<more>-[!-~]{0,200})?"
)
# What every party has to pass on; the standard lets longer ones be dropped.
_TRACESTATE = re.compile(r"[\t -~]{1,512}")
_REQUEST_ID = re.compile(r"[!-~]{1,256}")

TRACE_HEADERS = ("traceparent", "tracestate")
"""Those that tell of a trace."""


def forwarded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of the request's ``headers`` (lower-case names) that go to the upstream."""
    forwarded: dict[str, str] = {}
    request_id = headers.get("x-request-id", "")
    if _REQUEST_ID.fullmatch(request_id):
        forwarded["x-request-id"] = request_id
    if _trace_parent(headers) is None:
        return forwarded
    forwarded["traceparent"] = headers["traceparent"]
    # A state means nothing without its trace.
    tracestate = headers.get("tracestate", "")
    if _TRACESTATE.fullmatch(tracestate):
        forwarded["tracestate"] = tracestate
    return forwarded


def trace_id(headers: Mapping[str, str]) -> str:
    """The id, 32 hexadecimal digits, of the trace that a request with ``headers`` belongs to; empty where to none."""
    parent = _trace_parent(headers)
    return parent["trace"] if parent is not None else ""


def _trace_parent(headers: Mapping[str, str]) -> re.Match[str] | None:
    parts = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    return None if parts is None or (parts["version"] == "00" and parts["more"]) else parts
