"""The requests that put an endpoint to the test, and what each answer has to be.

None asks for a certain text: the checks hold for every model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from conformance.client import Answer
from conformance.documents import ANSWERED, check_error_body, check_response
from conformance.rules import Violation
from conformance.shapes import Json
from conformance.stream import StreamChecker

OK = (200,)
ANSWER_LIMIT = 64
"""Tokens of an answer that no probe wants longer."""
OUTPUT_LIMIT = 16
"""The lowest ``max_output_tokens`` that OpenAI's endpoint takes."""
METADATA = {"probe": "verify", "ключ": "значение"}

FinalCheck = Callable[[Json], Iterator[Violation]]


class Probe(NamedTuple):
    """One request. Members of ``body`` that are missing get a value that any endpoint takes.

    ``statuses`` are the HTTP statuses that the answer may have; ``check`` looks at the final response further;
    ``key`` replaces the API key.
    """

    name: str
    body: Mapping[str, Any] | bytes
    statuses: Collection[int] = OK
    check: FinalCheck | None = None
    content_type: str = "application/json"
    key: str | None = None

    @property
    def streamed(self) -> bool:
        """Whether the answer is asked for as a stream."""
        return isinstance(self.body, Mapping) and self.body.get("stream") is True

    def content(self, model: str) -> bytes:
        """The request body for ``model``."""
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps({"model": model, "max_output_tokens": ANSWER_LIMIT, **self.body}, ensure_ascii=False).encode()


def _limit_is_kept(response: Json) -> Iterator[Violation]:
    usage = response.get("usage")
    tokens = usage.get("output_tokens") if isinstance(usage, dict) else None
    if isinstance(tokens, int) and tokens > OUTPUT_LIMIT:
        yield Violation("output-limit", f"{tokens} output tokens, {OUTPUT_LIMIT} were allowed")
    details = response.get("incomplete_details")
    if isinstance(details, dict) and details.get("reason") != "max_output_tokens":
        yield Violation("output-limit", f"the answer was cut because of {details.get('reason')!r:.40}")


def _metadata_is_echoed(response: Json) -> Iterator[Violation]:
    if response.get("metadata") != METADATA:
        yield Violation("metadata-echo", f"metadata came back as {response.get('metadata')!r:.80}")


_HELLO = {"input": "Say hello."}
_COUNT = {"input": "Count from one to two hundred in words.", "max_output_tokens": OUTPUT_LIMIT}
_UNICODE = {"input": "Repeat: Grüße an alle 👋🏽 日本語 \u2028 e\u0301"}
_WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}

PROBES = (
    Probe("a text, streamed", {**_HELLO, "stream": True}),
    Probe("a text, whole", _HELLO),
    Probe("an output limit, streamed", {**_COUNT, "stream": True}, check=_limit_is_kept),
    Probe("an output limit, whole", _COUNT, check=_limit_is_kept),
    Probe("characters beyond ASCII", {**_UNICODE, "stream": True}),
    Probe("metadata", {**_HELLO, "metadata": METADATA, "stream": True}, check=_metadata_is_echoed),
    # A model without tool calls may refuse.
    Probe(
        "a function tool",
        {"input": "How is the weather in Rome?", "tools": [_WEATHER], "stream": True},
        statuses=(200, 400),
    ),
    Probe("an unknown model", {**_HELLO, "model": "no-such-model", "stream": True}, statuses=(400, 404)),
    Probe("malformed JSON", b'{"model": ', statuses=(400,)),
    Probe("another content type", _HELLO, statuses=range(400, 500), content_type="text/plain"),
    Probe("no input", {"stream": True}, statuses=(400,)),
)
WRONG_KEY = Probe("a wrong key", _HELLO, statuses=(401,), key="wrong")


def probes_for(key: str | None) -> tuple[Probe, ...]:
    """The probes for an endpoint; a wrong key is tried where there is a right one."""
    return PROBES if key is None else (*PROBES, WRONG_KEY)


def check_answer(probe: Probe, answer: Answer) -> tuple[int, list[Violation]]:
    """The number of events in the answer, and all that is wrong with it."""
    events = 0
    violations = list(_check_head(probe, answer))
    if answer.failure is not None:
        violations.append(Violation("http-complete", answer.failure))
    if answer.status not in OK:
        violations += check_error_body(answer.body)
    elif probe.streamed:
        events, found = _check_stream(probe, answer)
        violations += found
    else:
        violations += _check_whole(probe, answer.body)
    return events, violations


def _check_head(probe: Probe, answer: Answer) -> Iterator[Violation]:
    if answer.status not in probe.statuses:
        yield Violation("http-status", f"the status is {answer.status}")
    if not answer.headers.get("x-request-id"):
        yield Violation("request-id", "no x-request-id header")
    expected = "text/event-stream" if probe.streamed and answer.status in OK else "application/json"
    kind, *parameters = answer.headers.get("content-type", "").lower().replace(" ", "").split(";")
    charsets = {value for value in parameters if value.startswith("charset=")}
    if kind != expected or not charsets <= {"charset=utf-8"}:
        yield Violation("content-type", f"{answer.headers.get('content-type')} instead of {expected}")


def _check_stream(probe: Probe, answer: Answer) -> tuple[int, list[Violation]]:
    checker = StreamChecker()
    violations = []
    for place, chunk in enumerate(answer.chunks, 1):
        checker.feed(chunk)
        # A stream that ends inside an event is worse, and told as such.
        if not checker.between_events and place < len(answer.chunks):
            violations.append(Violation("sse-chunks", "a chunk ends inside an event", len(checker.events)))
    checker.end()
    violations += checker.violations
    final = checker.events[-1].data.get("response") if checker.events else None
    if probe.check is not None and isinstance(final, dict):
        violations += probe.check(final)
    return len(checker.events), violations


def _check_whole(probe: Probe, body: bytes) -> Iterator[Violation]:
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        response = None
    if not isinstance(response, dict):
        yield Violation("response-shape", "the body is not a JSON object")
        return
    status = response.get("status")
    if status not in ANSWERED:
        yield Violation("response-status", f"the status is {status!r:.40} in an answer with HTTP status 200")
    yield from check_response(response, status if status in ANSWERED else ANSWERED[0])
    if probe.check is not None:
        yield from probe.check(response)
