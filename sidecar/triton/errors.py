"""Triton's failures in the words of the Responses API.

Triton reports most failures as a text in a stream whose gRPC status is OK, and the codes it does send are unreliable
(``triton_grpc_error`` can crash older servers and is never sent), so failures are told apart by their text. The text
itself never reaches a client: it may hold prompts, paths or tracebacks.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from sidecar.responses.errors import ApiError
from sidecar.triton.frames import GrpcStatus

_DEADLINE_EXCEEDED = 4


def _unavailable() -> ApiError:
    return ApiError("infer_backend_unavailable", "The model runtime is not available; try again shortly.")


def _busy() -> ApiError:
    return ApiError("capacity_unavailable", "The model's queue is full; try again shortly.")


def _too_long() -> ApiError:
    return ApiError("context_length_exceeded", "The prompt is longer than the model's context.", "input")


def _failed() -> ApiError:
    return ApiError("infer_backend_unavailable", "The model failed while generating.")


# First match wins. Sources: triton-inference-server's core and http/grpc front ends, the python backend, TensorRT-LLM's
# executor and vLLM's engine.
_BY_TEXT = tuple(
    (re.compile(pattern, re.IGNORECASE), make)
    for pattern, make in (
        (r"maximum queue size|request timeout expired|queue is full", _busy),
        (
            r"exceeds? (the )?(maximum|max|model'?s?) (input|prompt|sequence|context|model) ?(length|size|len)?"
            r"|exceed_context_size|prompt length .* exceeds",
            _too_long,
        ),
        (
            r"unknown model|no available versions|version \d+ is not found|is not ready|is not healthy|unhealthy",
            _unavailable,
        ),
        (r"shutting down|unavailable|is unloading", _unavailable),
    )
)


def classify_message(text: str) -> ApiError:
    """The error for an ``error_message`` of ``ModelStreamInfer``."""
    for pattern, make in _BY_TEXT:
        if pattern.search(text):
            return make()
    return _failed()


def classify_end(http_status: int | None, grpc: GrpcStatus | None) -> ApiError:
    """The error for a stream that ended without having finished.

    Envoy's own answers carry a real HTTP status beside a gRPC status, and the HTTP status is the truer one: an idle
    timeout is 504 there and UNAVAILABLE here. With neither, the connection broke.
    """
    timed_out = http_status == HTTPStatus.GATEWAY_TIMEOUT or (
        http_status in (None, HTTPStatus.OK) and grpc is not None and grpc.code == _DEADLINE_EXCEEDED
    )
    if timed_out:
        return timeout()
    if grpc is not None and grpc.code and grpc.message and http_status in (None, HTTPStatus.OK):
        return classify_message(grpc.message)
    if http_status is None or http_status == HTTPStatus.OK:
        return ApiError("infer_backend_unavailable", "The model runtime ended the answer early.")
    return _unavailable()


def timeout() -> ApiError:
    """The error for a model that stays silent for too long: 504 before the first token."""
    return ApiError(
        "infer_backend_unavailable",
        "The model did not answer in time.",
        status_override=HTTPStatus.GATEWAY_TIMEOUT,
    )
