"""An answer that a model of Triton's generates, as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.backends.backend import FinishReason
from sidecar.backends.triton import errors
from sidecar.exchange.answer import Answer
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.events import UpstreamEnd, UpstreamHead
from sidecar.exchange.live import LiveAnswer
from sidecar.exchange.report import Report
from sidecar.generation.stops import StopStrings
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json

if TYPE_CHECKING:
    from sidecar.exchange.plan import TritonPlan


class TritonLive(LiveAnswer):
    """Its tokens become events of our own."""

    answer: Answer

    def __init__(self, plan: TritonPlan, call: CallUpstream, report: Report) -> None:
        super().__init__(plan, call, report)
        self._triton_plan = plan
        self._reader = plan.reader()
        self._writer = plan.writer()
        self._finish_reason: FinishReason = "stop"
        self.answer = Answer(
            self._reader,
            self._writer,
            StopStrings(plan.generation.stop),
            plan.parser(),
            report.usage,
            parallel_calls=plan.parallel_calls,
        )

    @property
    def first_token_seconds(self) -> float:
        """As the model's settings say."""
        return self.plan.model.settings.first_token_timeout

    @property
    def token_seconds(self) -> float:
        """As the model's settings say."""
        return self.plan.model.settings.token_timeout

    def timeout(self) -> ApiError:
        """See :class:`LiveAnswer`."""
        return errors.timeout()

    def head(self, head: UpstreamHead) -> None:
        """Nothing of it matters."""

    def again(self, end: UpstreamEnd) -> None:
        """Envoy has tried again."""

    def close(self, end: UpstreamEnd | None) -> bytes:
        """See :class:`LiveAnswer`."""
        reader = self._reader
        if end is None:
            return self.answer.close(reader.stop(), "stop")
        held_back = reader.end(end.whole, end.http_status, end.grpc)
        assert reader.finish_reason is not None, "a reader at its end knows why"
        self._finish_reason = reader.finish_reason
        return self.answer.close(held_back, self._finish_reason)

    def note(self) -> None:
        """See :class:`LiveAnswer`."""
        report, reader = self._report, self._reader
        usage = report.usage
        usage.cached_tokens = reader.cached_tokens
        if reader.input_tokens is not None:
            usage.input_tokens = reader.input_tokens
        report.counted = reader.counted and usage.output_tokens > 0
        report.broken_characters = reader.broken_characters
        report.repaired_calls = self.answer.repaired_calls

    def check_form(self) -> None:
        """No contract promises that guides are kept to."""
        if self._finish_reason != "stop":
            return
        report, plan, answer = self._report, self._triton_plan, self.answer
        guidance, calls, text = plan.guidance, answer.calls, answer.text
        report.missed_call = guidance.demands_call and not calls
        verdicts = [guidance.check_arguments(name, arguments) for name, arguments in calls]
        fits_schema = True if calls else guidance.check_text(text)
        report.broke_schema = fits_schema is False
        report.broken_arguments = verdicts.count(False)
        report.unchecked = None in (*verdicts, fits_schema)
        if plan.stream or not (report.missed_call or report.broke_schema):
            return
        fault = "did not make the call that was demanded" if report.missed_call else "did not keep to the format"
        raise ApiError("infer_backend_unavailable", f"The model {fault}.", retry=False)

    def response(self) -> Json:
        """See :class:`LiveAnswer`."""
        response = {**self.plan.response, **self.answer.result(self._finish_reason)}
        if self._finish_reason == "stop":
            response["completed_at"] = self.plan.response["created_at"] + int(self._report.timing.total)
        return response

    def finish(self, response: Json) -> bytes:
        """See :class:`LiveAnswer`."""
        return self._writer.finish(response)

    def fail(self, error: ApiError, members: Json, *, failed_event: bool) -> bytes:
        """See :class:`LiveAnswer`; an item that is open is ``incomplete``."""
        writer = self._writer
        # Numbers belong to what was sent, not to what was written and thrown away.
        writer.next_number = self.answer.next_number
        failed = writer.finish(self._failed(error, writer.cut_output())) if failed_event else b""
        return failed + writer.error(error, members)
