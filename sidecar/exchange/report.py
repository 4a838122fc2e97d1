"""What an exchange tells about itself when it is over: how it ended, what it used, how long it took. No content."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.responses.usage import Usage


@dataclass(slots=True)
class Timing:
    """Moments on a monotonic clock, in seconds; ``None`` until they came.

    ``head_at`` is when the request's head came, ``first_token_at`` the first generated token, ``model_done_at`` the
    last bytes from the model, ``done_at`` the end of the answer.
    """

    head_at: float = 0.0
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


@dataclass(frozen=True, slots=True)
class Report:
    """The end of an exchange.

    ``outcome`` is ``completed``, ``incomplete``, ``client_gone``, an error's code, or ``ok`` where no response was
    asked for; ``model`` and ``stream`` are ``None`` then, and when the request was refused before they were known.
    ``counted``: the runtime did not tell the output tokens, they were counted with our tokenizer.
    ``broke_schema``: the text did not fit the schema that was asked for.
    ``broken_characters`` is the number of U+FFFD in the model's text.
    """

    outcome: str
    model: str | None
    stream: bool | None
    usage: Usage
    timing: Timing
    counted: bool
    broke_schema: bool
    broken_characters: int
