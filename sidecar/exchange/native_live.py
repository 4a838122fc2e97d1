"""An answer that passes through from a native upstream, as it grows; and the routes that are tried for it.

A call that ends before its answer has begun may be followed by one to the model's next route: where nobody could be
reached, the upstream failed, or it takes no more for a moment. Each is an attempt in the report.
"""

from __future__ import annotations

import re
from dataclasses import replace
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING

from sidecar.backends.native.failures import OWN_REPLY, TIMEOUT, Refusal, refusal_of
from sidecar.backends.native.reader import CompactionReader, JsonReader, StreamReader
from sidecar.backends.native.refused import RefusedReader
from sidecar.backends.native.request import request_headers, with_model
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.earlier import own_param
from sidecar.exchange.events import UpstreamEnd, UpstreamHead
from sidecar.exchange.live import LiveAnswer
from sidecar.exchange.report import Attempt, Report
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.json_text import Json

if TYPE_CHECKING:
    from sidecar.exchange.native_plan import NativePlan

_FIRST_NAME = re.compile(r"[.\[]")
_MEDIA_TYPES = {True: "text/event-stream", False: "application/json"}


class NativeLive(LiveAnswer):
    """The answer to a plan whose first call is made at ``at``."""

    answer: StreamReader | JsonReader | RefusedReader

    def __init__(self, plan: NativePlan, report: Report, at: float) -> None:
        self._native_plan = plan
        self._left = list(plan.routes)
        self._called_at = at
        self._refusal: Refusal | None = None
        self._attempts = report.attempts
        super().__init__(plan, self._next_call(at), report)
        # A body that is no stream has none.
        self.comments_count = not plan.stream

    @property
    def first_token_seconds(self) -> float:
        """As the model's settings say; what is no stream comes at once, and may take as long as its request."""
        settings, seconds = self.plan.model.settings, self._native_plan.seconds
        whole = not self.plan.stream and isfinite(seconds)
        return max(settings.first_token_timeout, seconds) if whole else settings.first_token_timeout

    @property
    def token_seconds(self) -> float:
        """As the model's settings say."""
        return self.plan.model.settings.token_timeout

    def timeout(self) -> ApiError:
        """See :class:`LiveAnswer`."""
        return TIMEOUT.error()

    def head(self, head: UpstreamHead) -> None:
        """What is not the answer that was asked for is read as a refusal."""
        attempt = self._attempts[-1]
        attempt.status, attempt.ms = head.status, round((head.at - self._called_at) * 1000)
        media_type = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = head.headers.get("content-encoding", "").strip().lower()
        plain = media_type == _MEDIA_TYPES[self.plan.stream] and encoding in ("", "identity")
        if head.status != HTTPStatus.OK or not plain:
            self.answer = RefusedReader(head.status, head.headers)

    def again(self, end: UpstreamEnd) -> CallUpstream | None:
        """The call of the next route, if the one that has ended refused in a way that leaves hope."""
        attempt, answer = self._attempts[-1], self.answer
        if isinstance(answer, RefusedReader):
            self._refusal = answer.refusal()
        elif attempt.status is None:
            self._refusal = refusal_of(end.http_status, {OWN_REPLY: ""}, {})
        else:
            return None
        attempt.outcome = self._refusal.error.code
        # Where the connection has ended with the answer there is none left for another call.
        return self._next_call(end.at) if self._refusal.elsewhere and self._left and end.whole else None

    def close(self, end: UpstreamEnd | None) -> bytes:
        """See :class:`LiveAnswer`."""
        if self._refusal is not None:
            raise replace(self._refusal.error, param=self._own_param(self._refusal.error.param))
        answer = self.answer
        assert not isinstance(answer, RefusedReader), "a refusal ends with its body"
        return answer.end(end.whole) if end is not None else b""

    def note(self) -> None:
        """What is not told is an estimate: of the prompt, and of what has passed."""
        report, answer = self._report, self.answer
        usage, told, report.searches = report.usage, answer.usage, answer.searches
        if told is None:
            usage.output_tokens = answer.tokens
            report.counted = answer.tokens > 0
            return
        usage.input_tokens, usage.cached_tokens = told.input_tokens, told.cached_tokens
        usage.output_tokens, usage.reasoning_tokens = told.output_tokens, told.reasoning_tokens
        if self._native_plan.compacts and self._native_plan.limit is not None:
            # It has no limit at the upstream, and costs no more than was reserved.
            usage.output_tokens = min(usage.output_tokens, self._native_plan.limit)
        report.counted = False

    def check_form(self) -> None:
        """That is the upstream's business."""

    def response(self) -> Json:
        """See :class:`LiveAnswer`."""
        assert not isinstance(self.answer, RefusedReader)
        response = self.answer.response
        assert response is not None, "it is whole"
        if response.get("status") == "completed" and response.get("completed_at") is None:
            created = self.plan.response["created_at"]
            response = {**response, "completed_at": created + int(self._report.timing.total)}
        return response

    def finish(self, response: Json) -> bytes:
        """See :class:`LiveAnswer`."""
        assert isinstance(self.answer, StreamReader)
        return self.answer.finish(response)

    def fail(self, error: ApiError, members: Json, *, failed_event: bool) -> bytes:
        """See :class:`LiveAnswer`; its items are not kept, so the response that failed shows none."""
        assert isinstance(self.answer, StreamReader)
        writer = EventWriter(self.plan.ids, self.plan.response)
        writer.next_number = self.answer.next_number
        failed = writer.finish(self._failed(error, [])) if failed_event else b""
        return failed + writer.error(error, members)

    def _next_call(self, at: float) -> CallUpstream:
        plan = self._native_plan
        route = plan.model.routes[self._left.pop(0)]
        self._called_at = at
        self._refusal = None
        self._attempts.append(Attempt(route.upstream.name))
        reader = CompactionReader if plan.compacts else JsonReader
        self.answer = StreamReader(plan.telling, plan.limit) if plan.stream else reader(plan.telling)
        headers = request_headers(plan.upstream_headers, route.authorization, stream=plan.stream)
        body = with_model(route.model, plan.body)
        host = f"native.{route.upstream.name}"
        path = f"{route.upstream.path}/responses{'/compact' if plan.compacts else ''}"
        return CallUpstream(path, "application/json", headers, body, host)

    def _own_param(self, param: str | None) -> str | None:
        """The parameter as the client knows it; ``None`` where it has sent none of this name."""
        plan = self._native_plan
        if param is None or _FIRST_NAME.split(param, maxsplit=1)[0] not in plan.names:
            return None
        try:
            return own_param(param, plan.earlier_items, plan.places)
        except IndexError:
            return None
