"""Triton's failures in the words of the Responses API.

Triton reports most failures as a text in a stream whose gRPC status is OK, and the codes it does send are unreliable
(``triton_grpc_error`` can crash older servers and is never sent), so failures are told apart by their text. The text
itself never reaches a client: it may hold prompts, paths or tracebacks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from http import HTTPStatus

from sidecar.backends.failure import BackendError, Failure
from sidecar.backends.triton.frames import GrpcStatus

_DEADLINE_EXCEEDED = 4


_BACKEND = "infer_backend_unavailable"
_CAPACITY = "capacity_unavailable"
_NOT_AVAILABLE = "The model runtime is not available; try again shortly."

STARTING = Failure("starting", _BACKEND, "The model runtime is starting; try again shortly.")
"""Of a model that has not been heard of yet."""

_QUEUE_FULL = Failure("queue_full", _CAPACITY, "The model's queue is full; try again shortly.")
_OUT_OF_MEMORY = Failure("out_of_memory", _CAPACITY, "The model has no memory left; try again shortly.")
_TOO_LONG = Failure(
    "prompt_too_long", "context_length_exceeded", "The prompt is longer than the model's context.", "input"
)
_NOT_LOADED = Failure("not_loaded", _BACKEND, _NOT_AVAILABLE)
_OTHER_TENSORS = Failure("other_tensors", _BACKEND, _NOT_AVAILABLE)
_UNHEALTHY = Failure("unhealthy", _BACKEND, _NOT_AVAILABLE)
_STOPPING = Failure("stopping", _BACKEND, _NOT_AVAILABLE)
_CANCELLED = Failure("cancelled", _BACKEND, "The model runtime ended the answer early.")
_FAILED = Failure("failed", _BACKEND, "The model failed while generating.")
_ENDED_EARLY = Failure("ended_early", _BACKEND, "The model runtime ended the answer early.")
_UNREACHABLE = Failure("unreachable", _BACKEND, _NOT_AVAILABLE)
_TIMEOUT = Failure("timeout", _BACKEND, "The model did not answer in time.")

_BY_NAME = {
    failure.name: failure
    for failure in (
        *(_QUEUE_FULL, _OUT_OF_MEMORY, _TOO_LONG, _NOT_LOADED, _OTHER_TENSORS, _UNHEALTHY, _STOPPING, _CANCELLED),
        *(_FAILED, _ENDED_EARLY, _UNREACHABLE, _TIMEOUT),
    )
}

# First match wins. Sources: triton-inference-server's core and http/grpc front ends, the python backend, TensorRT-LLM's
# executor and vLLM's engine. A failure inside an ensemble or a BLS model comes wrapped in other words or a traceback.
_BY_TEXT = tuple(
    (re.compile(pattern, re.IGNORECASE), failure)
    for pattern, failure in (
        (r"maximum queue size|request timeout expired|queue is full", _QUEUE_FULL),
        (
            r"exceeds? (the )?(maximum|max|model'?s?) (input|prompt|sequence|context|model) ?(length|size|len)?"
            r"|exceed_context_size|prompt length .* exceeds|longer than the maximum model length|maximum context length"
            r"|(length|tokens) .*should not exceed max_(num_tokens|seq_len|input_len)",
            _TOO_LONG,
        ),
        (r"out of memory|can't allocate new blocks|no free blocks", _OUT_OF_MEMORY),
        (r"unknown model|no available versions|version \d+ is not found|is not ready", _NOT_LOADED),
        (
            r"unexpected inference input|expected \d+ inputs but got|(data-type|shape|dimension)s? .*for input"
            r"|unexpected inference output|inference input .* data-type is",
            _OTHER_TENSORS,
        ),
        (r"is not healthy|unhealthy", _UNHEALTHY),
        (r"shutting down|is unloading|being unloaded", _STOPPING),
        (r"\bcancell?ed\b", _CANCELLED),
        (r"unavailable", _UNREACHABLE),
    )
)


def classify_message(text: str) -> BackendError:
    """The error for an ``error_message`` of ``ModelStreamInfer``."""
    return next((failure for pattern, failure in _BY_TEXT if pattern.search(text)), _FAILED).error(text)


def classify_end(http_status: int | None, grpc: GrpcStatus | None) -> BackendError:
    """The error for a stream that ended without having finished.

    Envoy's own answers carry a real HTTP status beside a gRPC status, and the HTTP status is the truer one: an idle
    timeout is 504 there and UNAVAILABLE here. With neither, the connection broke.
    """
    words = grpc.message if grpc is not None else ""
    timed_out = http_status == HTTPStatus.GATEWAY_TIMEOUT or (
        http_status in (None, HTTPStatus.OK) and grpc is not None and grpc.code == _DEADLINE_EXCEEDED
    )
    if timed_out:
        return _TIMEOUT.error(words)
    if grpc is not None and grpc.code and grpc.message and http_status in (None, HTTPStatus.OK):
        return classify_message(grpc.message)
    if http_status is None or http_status == HTTPStatus.OK:
        return _ENDED_EARLY.error(words)
    return _UNREACHABLE.error(words)


def outage_of(failure: str) -> Failure:
    """How requests are refused while a model has the failure of this name; any other name is that of a failed one.

    What a client is told is what holds for its own request, which the model has not been given.
    """
    known = _BY_NAME.get(failure, _FAILED)
    return known if known.code == _CAPACITY else replace(known, code=_BACKEND, message=_NOT_AVAILABLE, param=None)


def given_up(reason: str) -> BackendError:
    """The error for a generation that the runtime ended unfinished; ``reason`` is its finish reason."""
    return _ENDED_EARLY.error(reason)


def timeout() -> BackendError:
    """The error for a model that stays silent for too long."""
    return _TIMEOUT.error()
