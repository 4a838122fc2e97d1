"""Makes the spans of exchanges from what happens to them; nothing is done for a token.

A request is a span of kind *server*, below what Envoy or the client has sent as its parent. Below it lie its steps, and
each call of a model as a span of kind *client*, which goes along with the call: Triton's own spans, or an upstream's,
lie below that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.trace import Tracer

from sidecar.admission.directives import Directives
from sidecar.exchange.asks import Ask
from sidecar.exchange.commands import CallUpstream, Command
from sidecar.exchange.events import Abort, Answered, ClientGone, Event, RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.planned import Plan
from sidecar.telemetry.traces.spans import Spans


class TraceExchanges:
    """Keeps the spans of exchanges that are under way. ``content`` is whether they tell what is said."""

    def __init__(self, tracer: Tracer, *, content: bool = False) -> None:
        self._tracer = tracer
        self._content = content
        self._under_way: dict[Exchange, Spans] = {}

    def observe(self, exchange: Exchange, event: Event, commands: Sequence[Command]) -> None:
        """Begin and end spans."""
        if type(event) is RequestComplete:
            self._under_way[exchange] = Spans(self._tracer, exchange.report, event, content=self._content)
        spans = self._under_way.get(exchange)
        if spans is None:
            return
        if type(event) is Answered:
            spans.answered(event.at)
            if isinstance(event.result, Directives) and event.result.retains_nothing:
                spans.tell_nothing_said()
            elif isinstance(event.result, Plan):
                spans.planned(event.result)
        if not isinstance(event, Abort | ClientGone):
            for command in commands:
                if isinstance(command, Ask):
                    spans.asked(command, event.at)
                elif type(command) is CallUpstream:
                    spans.called(exchange.report, event.at)
        spans.note_status(commands)
        if exchange.done:
            del self._under_way[exchange]
            spans.over(exchange.report, commands)

    def headers(self, exchange: Exchange) -> Mapping[str, str]:
        """The context of the call of a model that has been shown last."""
        spans = self._under_way.get(exchange)
        return spans.context_of_call() if spans is not None else {}
