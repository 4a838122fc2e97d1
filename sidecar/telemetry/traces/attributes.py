"""What spans tell, by OpenTelemetry's semantic conventions where these have a name for it; content is in ``content``.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/, https://opentelemetry.io/docs/specs/semconv/http/
"""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.exchange.planned import Plan
from sidecar.exchange.report import Report
from sidecar.surfaces import SURFACES

Attributes = dict[str, str | bool | int | float | tuple[str, ...]]

OPERATION = "chat"
"""What the conventions call an operation that makes a response."""

_ASKED = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}


def route(surface: str, headers: Mapping[str, str]) -> str:
    """The path of the endpoint that a request is for, with ``{id}`` for an id in it; empty where there is none."""
    path = headers.get(":path", "").partition("?")[0]
    return next((endpoint.path for endpoint in SURFACES[surface].endpoints if endpoint.match(path) is not None), "")


def of_request(report: Report, headers: Mapping[str, str], route: str) -> Attributes:
    """What is known of a request when it has come."""
    caller = report.caller
    known = {
        "http.request.method": headers.get(":method", ""),
        "http.route": route,
        "responses.request_id": report.request_id,
        "responses.surface": report.surface,
        "responses.organization": caller.organization,
        "responses.project": caller.project,
        "responses.key": caller.key,
    }
    return {name: value for name, value in known.items() if value}


def of_plan(plan: Plan) -> Attributes:
    """What is known of the call of a model before it is made, whichever route it takes."""
    asked = {f"gen_ai.request.{told}": plan.response.get(name) for name, told in _ASKED.items()}
    return {
        "gen_ai.operation.name": OPERATION,
        "gen_ai.request.model": plan.model.name,
        "gen_ai.request.stream": plan.stream,
        "gen_ai.response.id": plan.ids.response,
        **{name: value for name, value in asked.items() if isinstance(value, int | float)},
    }


def of_answer(report: Report) -> Attributes:
    """What is known of the last call of a model when its answer is over; nothing of one that has not begun."""
    usage, timing = report.usage, report.timing
    if timing.first_token_at is None:
        return {}
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "gen_ai.response.time_to_first_chunk": timing.first_token_at - timing.called_at,
    }
    if report.outcome in ("completed", "incomplete"):
        attributes["gen_ai.response.finish_reasons"] = (report.outcome,)
    return attributes
