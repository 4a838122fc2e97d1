"""What an exchange tells about itself: how it ended, what it used, how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.backends.failure import BackendError
from sidecar.exchange.delivered import Delivered
from sidecar.responses.caller import Caller
from sidecar.responses.usage import Usage


@dataclass(slots=True)
class Timing:
    """Moments on a monotonic clock, in seconds; ``None`` until they came.

    ``head_at`` is when the request's head came, ``called_at`` when the upstream was called (0 until then),
    ``first_token_at`` the first generated token, ``model_done_at`` the last bytes from the model, ``done_at`` the end
    of the answer.
    """

    head_at: float = 0.0
    called_at: float = 0.0
    first_token_at: float | None = None
    model_done_at: float | None = None
    done_at: float | None = None

    @property
    def ttft_ms(self) -> float:
        """Milliseconds from the request's head to the first generated token."""
        return self._ms(self.first_token_at)

    @property
    def total(self) -> float:
        """Seconds from the request's head to the end of the answer."""
        return (self.done_at or self.head_at) - self.head_at

    def stream_ms(self) -> dict[str, float]:
        """The timing of a streamed answer."""
        return {"ttft_ms": self.ttft_ms, "total_ms": self._ms(self.done_at)}

    def whole_ms(self) -> dict[str, float]:
        """The timing of a non-streamed answer."""
        return {"model_ms": self._ms(self.model_done_at), "total_ms": self._ms(self.done_at)}

    def _ms(self, at: float | None) -> float:
        return round(((at or self.head_at) - self.head_at) * 1000, 1)


@dataclass(slots=True)
class Attempt:
    """One route that was tried: its name, never its host or a word of it.

    ``outcome`` is ``completed``, ``incomplete`` or an error's code, ``None`` until the attempt is over; ``status`` the
    HTTP status that the upstream answered with, where that is what it speaks, and ``ms`` for how many milliseconds the
    head of its answer was waited for.
    """

    route: str
    outcome: str | None = None
    status: int | None = None
    ms: int | None = None


TRITON = "triton"
"""The route of the node's own models."""


@dataclass(slots=True)
class Report:
    """One exchange as far as it has come; filled in as it goes on, and whole once it is over.

    Attributes:
        request_id: the ``x-request-id`` of the request.
        trace_id: the trace that it belongs to, 32 hexadecimal digits; empty where it belongs to none.
        surface: the surface that it came by; empty where it came by none.
        caller: on whose behalf it is.
        outcome: ``completed``, ``incomplete``, ``client_gone``, an error's code, or ``ok`` where no response was asked
            for.
        response_id: the response's id; ``None`` as for ``model``.
        model: the model's name; ``None`` unless a response was asked for and the request accepted.
        stream: whether its answer is an event stream; ``None`` as for ``model``.
        usage: tokens, as far as they have been generated.
        delivered: how many of them the client has been given; final once the transport is over, later than ``done``.
        timing: moments.
        searches: how many web searches the upstream has made.
        attempts: the routes that were tried, in order; the last one's outcome is the exchange's, where it has none.
        counted: the runtime did not tell the output tokens, they were counted with our tokenizer.
        broke_schema: the text did not fit the schema that was asked for.
        missed_call: the model did not make the call that was demanded.
        broken_arguments: the number of calls whose arguments do not fit the schema that they had to fit.
        repaired_calls: the number of calls whose arguments had to be made valid JSON.
        unchecked: whether the text or some arguments fit would have taken too long to tell; they were taken to.
        broken_characters: the number of U+FFFD in the model's text.
        remedy: what the operator can do about them; empty where only the model itself can write them.
        backend_error: the model runtime's failure that ended the exchange. Its ``words`` may hold content; nothing else
            of a report does.
    """

    request_id: str = ""
    trace_id: str = ""
    surface: str = ""
    caller: Caller = field(default_factory=Caller)
    outcome: str = "client_gone"
    response_id: str | None = None
    model: str | None = None
    stream: bool | None = None
    usage: Usage = field(default_factory=Usage)
    delivered: Delivered = field(default_factory=Delivered)
    timing: Timing = field(default_factory=Timing)
    searches: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    counted: bool = False
    broke_schema: bool = False
    missed_call: bool = False
    broken_arguments: int = 0
    repaired_calls: int = 0
    unchecked: bool = False
    broken_characters: int = 0
    remedy: str = ""
    backend_error: BackendError | None = None
