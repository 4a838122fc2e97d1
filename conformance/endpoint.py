"""One endpoint under test: sends the probes and gathers what they find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.client import NoAnswerError, request
from conformance.probes import Probe, check_answer, probes_for
from conformance.report import Result
from conformance.rules import Violation


class NoModelError(Exception):
    """The endpoint does not say which models it has."""


@dataclass(frozen=True)
class Endpoint:
    """A Responses endpoint. ``base_url`` is what an SDK takes: ``/responses`` is added to it."""

    base_url: str
    key: str | None

    @property
    def url(self) -> str:
        """Where responses are created."""
        return f"{self.base_url.rstrip('/')}/responses"

    def first_model(self) -> str:
        """The first model of the endpoint's list.

        Raises:
            NoAnswerError: the endpoint could not be reached.
            NoModelError: it has no list of models.
            ValueError: the URL is not an ``http`` or ``https`` URL.
        """
        answer = request("GET", f"{self.base_url.rstrip('/')}/models", self._headers(self.key))
        try:
            return str(json.loads(answer.body)["data"][0]["id"])
        except (ValueError, LookupError, TypeError) as error:
            raise NoModelError(f"The endpoint has no list of models (HTTP status {answer.status}).") from error

    def results(self, model: str) -> Iterator[Result]:
        """Send the probes one after another; each one's outcome.

        Raises:
            ValueError: the URL is not an ``http`` or ``https`` URL.
        """
        for probe in probes_for(self.key):
            yield self._try(probe, model)

    def _try(self, probe: Probe, model: str) -> Result:
        headers = {**self._headers(probe.key or self.key), "Content-Type": probe.content_type}
        try:
            answer = request("POST", self.url, headers, probe.content(model))
        except NoAnswerError as error:
            return Result(probe.name, None, 0, [Violation("http-complete", str(error))])
        return Result(probe.name, answer.status, *check_answer(probe, answer))

    def _headers(self, key: str | None) -> dict[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key}"}
