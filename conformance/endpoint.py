"""One endpoint under test: sends the probes and gathers what they find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from conformance.answers import Verdict, check_answer
from conformance.client import Answer, NoAnswerError, request
from conformance.probe import OK, Probe
from conformance.probes import PROBES, probes_for
from conformance.rules import Violation
from conformance.stored import stored_results
from conformance.verification import Result
from conformance.words import server_message

TRIES = 3
"""How often a stream that seems to be buffered is asked for."""

_ELSEWHERE = (*range(300, 400), 404, 405, 501)
"""The statuses of a server that has no such endpoint."""


class EndpointError(Exception):
    """The endpoint cannot be tried; the message is one sentence that says why."""


@dataclass(frozen=True)
class Endpoint:
    """A Responses endpoint. ``base_url`` is what an SDK takes: ``/responses`` is added to it.

    Raises:
        ValueError: ``key`` has characters that a header cannot hold.
    """

    base_url: str
    key: str | None

    def __post_init__(self) -> None:
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise ValueError("the key has characters that an HTTP header cannot hold")

    @property
    def url(self) -> str:
        """Where responses are created."""
        return f"{self.base_url.rstrip('/')}/responses"

    def first_model(self) -> str:
        """The first model of the endpoint's list.

        Raises:
            EndpointError: it has no list of models.
            NoAnswerError: the endpoint could not be reached.
            ValueError: the URL is not an ``http`` or ``https`` URL.
        """
        url = f"{self.base_url.rstrip('/')}/models"
        answer = request("GET", url, _authorization(self.key))
        try:
            return str(json.loads(answer.body)["data"][0]["id"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            words = f"GET {url} names no model (status {answer.status}): check the URL, or name a model"
            raise EndpointError(words) from error

    def results(self, model: str) -> Iterator[Result]:
        """Send the probes one after another; each one's outcome.

        Raises:
            EndpointError: the first answer shows that there is no such endpoint, or that it refuses the key.
            NoAnswerError: the first probe got no answer.
            ValueError: the URL is not an ``http`` or ``https`` URL.
        """
        turns: dict[str, _Turn] = {}
        for probe in probes_for(self.key):
            before = None if probe.before is None else turns[probe.before.probe]
            try:
                turns[probe.name] = self._take(probe, before, model)
            except NoAnswerError as error:
                if not turns:
                    raise
                turns[probe.name] = _Turn(_unanswered(probe, error))
            yield turns[probe.name].result
        yield from stored_results(self._send, model)

    def _send(self, method: str, path: str, body: bytes | None) -> Answer:
        """The answer to a request about stored responses; ``path`` follows the URL."""
        headers = _authorization(self.key) | ({} if body is None else {"Content-Type": "application/json"})
        return request(method, f"{self.url}{path}", headers, body)

    def _take(self, probe: Probe, before: _Turn | None, model: str) -> _Turn:
        """Send a probe, after the turn ``before`` where there is one."""
        if before is not None:
            ready = None if before.sent is None else probe.after(before.sent, before.output)
            if ready is None:
                return _Turn(Result(probe.name, probe.expected, skipped=before.result.skipped or "not tried"))
            probe = ready
        answer, verdict = self._ask(probe, model)
        if probe is PROBES[0]:
            self._refuse_strangers(answer)
        output = None if verdict.response is None else verdict.response.get("output")
        result = _result(probe, answer, verdict)
        return _Turn(result, probe, output) if isinstance(output, list) else _Turn(result)

    def _ask(self, probe: Probe, model: str) -> tuple[Answer, Verdict]:
        """The answer to a probe. A stream that seems to be buffered has to seem so each time."""
        headers = {**_authorization(probe.key or self.key), "Content-Type": probe.content_type}
        for _ in range(TRIES):
            answer = request("POST", self.url, headers, probe.content(model))
            verdict = check_answer(probe, answer)
            if all(violation.rule != "sse-buffered" for violation in verdict.violations):
                break
        return answer, verdict

    def _refuse_strangers(self, answer: Answer) -> None:
        """Say so where the first answer is not that of a Responses endpoint which takes the key."""
        html = answer.headers.get("content-type", "").lower().startswith("text/html")
        said = None if html or answer.status in OK else server_message(answer.body)
        words = f"POST {self.url} is answered with {'an HTML page, ' if html else ''}status {answer.status}"
        words += f" ({said})" if said else ""
        if html or answer.status in _ELSEWHERE:
            raise EndpointError(f"{words}: there is no Responses endpoint at this URL, or no such model")
        if answer.status in (401, 403):
            raise EndpointError(f"{words}: it needs a key that it knows")


class _Turn(NamedTuple):
    """A probe's result, and what a next turn replays: the probe as it was ``sent`` and the ``output`` it got."""

    result: Result
    sent: Probe | None = None
    output: Any = None


def _result(probe: Probe, answer: Answer, verdict: Verdict) -> Result:
    return Result(
        probe.name,
        probe.expected,
        answer.status,
        verdict.events,
        verdict.violations,
        verdict.refusal,
        "not supported" if verdict.unsupported else None,
    )


def _unanswered(probe: Probe, error: NoAnswerError) -> Result:
    return Result(probe.name, probe.expected, violations=[Violation("http-complete", str(error))])


def _authorization(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}
