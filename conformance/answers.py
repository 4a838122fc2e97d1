"""What is wrong with an HTTP answer to a probe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from conformance.client import Answer
from conformance.documents import ANSWERED, check_error_body, check_response
from conformance.event_types import FAILURES, TERMINALS
from conformance.markers import check_markers
from conformance.pace import arrived_at_once
from conformance.probe import OK, Probe
from conformance.rules import Violation
from conformance.shapes import Json
from conformance.stream import StreamChecker
from conformance.words import error_of, printable, server_message


class Verdict(NamedTuple):
    """What an answer is: the number of its events, all that is wrong with it, and the response that it ends with.

    ``refusal`` is what the server says of a request that it refuses; ``unsupported`` says that it may refuse it.
    """

    events: int
    violations: list[Violation]
    response: Json | None = None
    refusal: str | None = None
    unsupported: bool = False


def check_answer(probe: Probe, answer: Answer) -> Verdict:
    """Check the whole answer to a probe."""
    violations = list(check_head(probe, answer))
    if answer.status not in OK:
        violations += check_error_body(answer.body)
        return Verdict(0, violations, None, server_message(answer.body), _is_unsupported(probe, answer))
    verdict = _check_stream(probe, answer) if probe.streamed else _check_whole(answer.body)
    violations += verdict.violations
    if verdict.response is not None:
        violations += check_markers(verdict.response)
        violations += probe.check(verdict.response) if probe.check is not None else []
    return verdict._replace(violations=violations)


def check_head(probe: Probe, answer: Answer) -> Iterator[Violation]:
    """Check what an answer to a probe begins with, and that it came to its end."""
    if answer.status not in probe.statuses and not _is_unsupported(probe, answer):
        said = None if answer.status in OK else server_message(answer.body)
        words = f"the status is {answer.status} instead of {probe.expected}"
        yield Violation("http-status", f"{words}: {said}" if said else words)
    if not answer.headers.get("x-request-id"):
        yield Violation("request-id", "no x-request-id header")
    expected = "text/event-stream" if probe.streamed and answer.status in OK else "application/json"
    kind, *parameters = answer.headers.get("content-type", "").lower().replace(" ", "").split(";")
    charsets = {value for value in parameters if value.startswith("charset=")}
    if kind != expected or not charsets <= {"charset=utf-8"}:
        yield Violation("content-type", f"{answer.headers.get('content-type')!r:.80} instead of {expected}")
    if answer.failure is not None:
        yield Violation("http-complete", printable(answer.failure))


def _is_unsupported(probe: Probe, answer: Answer) -> bool:
    """Whether the endpoint says that it does not have what the probe is about."""
    error = error_of(answer.body) if answer.status == 400 else None
    if not isinstance(error, dict) or error.get("code") != "unsupported_parameter":
        return False
    param = error.get("param")
    # ``tools[0].strict`` is about ``tools``.
    named = param.split(".")[0].split("[")[0] if isinstance(param, str) else None
    return bool(probe.optional) and named in (None, *probe.optional)


def _check_stream(probe: Probe, answer: Answer) -> Verdict:
    checker = StreamChecker()
    violations: list[Violation] = []
    arrivals: list[float] = []
    for place, piece in enumerate(answer.pieces, 1):
        checker.feed(piece.data)
        arrivals += [piece.seconds] * (len(checker.events) - len(arrivals))
        # A stream that ends inside an event is worse, and told as such.
        if piece.ends_chunk and not checker.between_events and place < len(answer.pieces):
            violations.append(Violation("sse-chunks", "a chunk ends inside an event", len(checker.events)))
    checker.end()
    violations += checker.violations
    ends = [event for event in checker.events if event.type in TERMINALS]
    if ends and ends[0].type in FAILURES and answer.status in probe.statuses:
        violations.append(Violation("answer-failed", _failure(ends[0].data)))
    deltas = [at for at, event in zip(arrivals, checker.events, strict=True) if event.type.endswith(".delta")]
    if probe.paced and arrived_at_once(deltas):
        violations.append(
            Violation("sse-buffered", f"{len(deltas)} deltas came at once, {deltas[0]:.1f} s after the request")
        )
    final = ends[0].data.get("response") if ends and ends[0].type not in FAILURES else None
    return Verdict(len(checker.events), violations, final if isinstance(final, dict) else None)


def _failure(data: Json) -> str:
    """What an event says that ends a stream badly."""
    response = data.get("response")
    error = response.get("error") if isinstance(response, dict) else data.get("error", data)
    message = error.get("message") if isinstance(error, dict) else None
    words = f"the stream ends with {data['type']}"
    return f"{words}: {printable(message)}" if isinstance(message, str) and message else words


def _check_whole(body: bytes) -> Verdict:
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        response = None
    if not isinstance(response, dict):
        return Verdict(0, [Violation("response-shape", "the body is not a JSON object")])
    status = response.get("status")
    violations = []
    if status not in ANSWERED:
        words = f"the status is {status!r:.40} in an answer with HTTP status 200"
        violations.append(Violation("response-status", words))
    violations += check_response(response, status if status in ANSWERED else ANSWERED[0])
    return Verdict(0, violations, response)
