"""Failures of native upstreams in our own words.

What an upstream says of itself never reaches a client: its words may name its hosts, its limits for us, or our key. Of
an error's members only the code and the type are read, to tell its class, and the path of the parameter it is about.

Source: OpenAI's error codes; RFC 9110, section 10.2.3 (``Retry-After``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

from sidecar.backends.failure import BackendError, Failure
from sidecar.responses.json_text import Json

SHORT_SECONDS = 10
"""A limit of the upstream that is over so soon is one of the moment; another one is that of our account there."""

OWN_REPLY = "x-local-reply"
"""The header of answers that Envoy's egress listener makes itself, in place of an upstream's."""

_BACKEND = "infer_backend_unavailable"
_NOT_AVAILABLE = "The model's provider is not available; try again shortly."
_REFUSED_US = "The model's provider does not serve this model now."

UNREACHABLE = Failure("upstream_unreachable", _BACKEND, _NOT_AVAILABLE)
NOT_ITS_PROTOCOL = Failure("upstream_not_its_protocol", _BACKEND, "The model's provider gave no valid answer.")
ENDED_EARLY = Failure("upstream_ended_early", _BACKEND, "The model's provider ended the answer early.")
TIMEOUT = Failure("upstream_timeout", _BACKEND, "The model did not answer in time.")
BROKEN = Failure("upstream_error", _BACKEND, _NOT_AVAILABLE)
_FAILED = Failure("upstream_failed", _BACKEND, "The model failed while generating.")
_LIMITED = Failure("upstream_limited", "capacity_unavailable", "The model's provider takes no more requests now.")
_ACCOUNT = Failure("upstream_account", _BACKEND, _REFUSED_US)
_KEY = Failure("upstream_key", _BACKEND, _REFUSED_US)
_NO_MODEL = Failure("upstream_no_model", _BACKEND, _REFUSED_US)
_REFUSED = Failure("upstream_refused", "invalid_request", "The model's provider does not accept the request.")
_TOO_LARGE = Failure("upstream_too_large", "payload_too_large", "The request is larger than the model accepts.")
_TOO_LONG = Failure(
    "upstream_too_long", "context_length_exceeded", "The conversation is longer than the model's context.", "input"
)

_BY_CODE = {
    "context_length_exceeded": _TOO_LONG,
    "exceed_context_size_error": _TOO_LONG,
    "insufficient_quota": _ACCOUNT,
    "billing_hard_limit_reached": _ACCOUNT,
    "invalid_api_key": _KEY,
    "model_not_found": _NO_MODEL,
    "rate_limit_exceeded": _LIMITED,
    "server_is_overloaded": _LIMITED,
    "slow_down": _LIMITED,
    "invalid_prompt": _REFUSED,
    "content_policy_violation": _REFUSED,
    "invalid_request_error": _REFUSED,
}
"""By an error's code, or else by its type."""

_BY_STATUS: dict[int, Failure] = {
    HTTPStatus.UNAUTHORIZED: _KEY,
    HTTPStatus.PAYMENT_REQUIRED: _ACCOUNT,
    HTTPStatus.FORBIDDEN: _KEY,
    HTTPStatus.NOT_FOUND: _NO_MODEL,
    HTTPStatus.REQUEST_TIMEOUT: TIMEOUT,
    HTTPStatus.CONFLICT: BROKEN,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS: _LIMITED,
    HTTPStatus.GATEWAY_TIMEOUT: TIMEOUT,
}

_PARAM = re.compile(r"[A-Za-z_]\w{0,63}(\.\w{1,64}|\[\d{1,5}\]){0,8}", re.ASCII)
_SECONDS = re.compile(r"\d{1,6}(\.\d{1,6})?")


class Refusal(NamedTuple):
    """An answer that is none: ``error`` is what it comes to, ``elsewhere`` whether another route may do better."""

    error: BackendError
    elsewhere: bool


def refusal_of(status: int | None, headers: Mapping[str, str], body: Json) -> Refusal:
    """What an answer whose ``status`` is not 200 comes to; without one no head came.

    ``headers`` have lower-case names; ``body`` is the answer's, empty where that is no JSON object.
    """
    told = _error_of(body)
    if status is None or OWN_REPLY in headers:
        failure = TIMEOUT if status == HTTPStatus.GATEWAY_TIMEOUT else UNREACHABLE
        return Refusal(failure.error(f"HTTP {status}"), elsewhere=True)
    words = f"HTTP {status}: {told.get('code')} {told.get('type')}: {told.get('message')}"
    by_code, wait = _by_code(told), _wait(headers)
    retry_after = None if wait is None else max(1, round(wait))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        failure = _LIMITED if by_code is _LIMITED else _BY_STATUS.get(status, BROKEN)
        return Refusal(replace(failure.error(words), retry_after=retry_after), elsewhere=True)
    if status < HTTPStatus.BAD_REQUEST:
        return Refusal(NOT_ITS_PROTOCOL.error(words), elsewhere=False)
    failure = by_code or _BY_STATUS.get(status, _REFUSED)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        error = replace(failure.error(words), retry_after=retry_after)
        return Refusal(error, elsewhere=wait is not None and wait <= SHORT_SECONDS)
    error = failure.error(words)
    if failure is _REFUSED:
        error = replace(error, param=_param(told))
    return Refusal(error, elsewhere=False)


def failure_of(error: Json) -> BackendError:
    """What the error of an event, or of a response that failed, comes to."""
    words = f"{error.get('code')} {error.get('type')}: {error.get('message')}"
    return (_by_code(error) or _FAILED).error(words)


def _error_of(body: Json) -> Json:
    error = body.get("error")
    return error if isinstance(error, dict) else {}


def _by_code(error: Json) -> Failure | None:
    names = (error.get("code"), error.get("type"))
    return next((_BY_CODE[name] for name in names if isinstance(name, str) and name in _BY_CODE), None)


def _param(error: Json) -> str | None:
    """The path of the parameter that the upstream names, where it is a path: nothing else of its words is passed on."""
    param: Any = error.get("param")
    return param if isinstance(param, str) and _PARAM.fullmatch(param) else None


def _wait(headers: Mapping[str, str]) -> float | None:
    """For how many seconds to wait; ``None`` where it is not told, or as a date."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        if _SECONDS.fullmatch(value := headers.get(name, "").strip()):
            return float(value) / unit
    return None
