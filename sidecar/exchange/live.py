"""An answer that grows: what the phases of an exchange see of it, whoever generates it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol

from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.events import UpstreamEnd, UpstreamHead
from sidecar.exchange.planned import Plan
from sidecar.exchange.report import Report
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.responses.marks import Counts
from sidecar.responses.usage import Usage


class Growing(Protocol):
    """Where the upstream's bytes go.

    ``begun`` tells that something has been generated, ``stopped`` that the answer is over although the upstream may go
    on, ``failure`` what the upstream has reported after what it had generated. ``mark`` is how far its events go.
    """

    begun: bool
    stopped: bool
    failure: ApiError | None
    mark: int

    def feed(self, data: bytes) -> bytes:
        """The events that ``data`` completes. This is the per-token path."""


class LiveAnswer(ABC):
    """The answer to ``call``. ``answer`` is where its bytes go; it changes between two calls only."""

    comments_count = True
    """Whether bytes that complete no event show that the model is at work."""

    answer: Growing

    def __init__(self, plan: Plan, call: CallUpstream, report: Report) -> None:
        self.plan = plan
        self.call = call
        self._report = report

    @property
    @abstractmethod
    def first_token_seconds(self) -> float:
        """For how long the upstream may be silent before the answer begins."""

    @property
    @abstractmethod
    def token_seconds(self) -> float:
        """For how long it may be silent after that."""

    @abstractmethod
    def timeout(self) -> ApiError:
        """The error for an upstream that is silent for longer."""

    @abstractmethod
    def head(self, head: UpstreamHead) -> None:
        """The head of the upstream's answer has come, of a call that is told of it."""

    @abstractmethod
    def again(self, end: UpstreamEnd) -> CallUpstream | None:
        """The call of another upstream, where one that has ended before it began is worth it."""

    @abstractmethod
    def close(self, end: UpstreamEnd | None) -> bytes:
        """The events that end the answer, all but the last; without ``end`` it has stopped by itself.

        Raises:
            ApiError: it is not complete.
        """

    @abstractmethod
    def note(self) -> None:
        """Put into the report what the upstream has told, in place of what was assumed."""

    @abstractmethod
    def check_form(self) -> None:
        """Look whether a closed answer is what was demanded.

        Raises:
            ApiError: it is not, and nothing of it has been sent yet.
        """

    @abstractmethod
    def response(self) -> Json:
        """The response of a closed answer."""

    @abstractmethod
    def finish(self, response: Json) -> bytes:
        """The event of the whole ``response``, which ends the stream."""

    @abstractmethod
    def fail(self, error: ApiError, members: Json, *, failed_event: bool) -> bytes:
        """The events that end the stream with ``error``, whose nested members these are.

        With ``failed_event``, ``response.failed`` comes first.
        """

    def _failed(self, error: ApiError, output: list[Json]) -> Json:
        """The response that failed with ``error``; its tokens are those of what was sent: they are what counts."""
        failed = {"status": "failed", "error": {"code": error.failed_code, "message": error.message}}
        return {**self.plan.response, **failed, "output": output, "usage": self._usage_written().to_json()}

    def _usage_written(self) -> Usage:
        counts = Counts.of(self._report.delivered.written)
        return replace(self._report.usage, output_tokens=counts.output_tokens, reasoning_tokens=counts.reasoning_tokens)
