"""What goes into the ledger and what comes back: a reservation before the model is called, a settlement at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sidecar.admission.balances import Limit
from sidecar.admission.standing import UNLIMITED, Standing

TOKEN_COUNTS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "guided_tokens")
"""The tokens that a settlement tells and a record counts, by the names of both's members."""

RefusalCode = Literal["concurrency_limited", "rate_limited", "quota_exceeded", "credits_exhausted"]


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """What a request asks for before the model is called.

    ``id`` is the reservation's, a ULID; making the same one again changes nothing. ``worker`` is the life of the
    process that will settle it. ``input_tokens`` are those of the prompt, ``output_tokens`` those to reserve on top of
    them. ``image_bytes`` are the most that may be fetched for it; 0 where it names no remote image.

    What a receipt tells beside all this: the ``project`` and ``environment`` in whose log the request stands, ``None``
    for one that stands in none; ``endpoint`` is what it was sent to, ``told_model`` what answers call its model;
    ``session`` is the conversation that its client counts it to, ``client_request_id`` the client's own id of it.

    ``searches`` are the web searches that may be made for it. ``user_limits`` are those that hold for its end user
    alone.
    """

    id: str
    request_id: str
    organization_id: str
    model: str
    node: str
    worker: str
    input_tokens: int
    output_tokens: int
    image_bytes: int = 0
    stream: bool = False
    credential_id: str | None = None
    end_user: str | None = None
    tags: str | None = None
    project: str | None = None
    environment: str | None = None
    endpoint: str | None = None
    told_model: str | None = None
    session: str | None = None
    client_request_id: str | None = None
    user_limits: tuple[Limit, ...] = ()
    searches: int = 0

    @property
    def line(self) -> tuple[str, str]:
        """Where it waits, if it has to: with its organization's other requests for the model, and for its end user."""
        named = "".join(f" {limit.key.period}" for limit in self.user_limits)
        return self.organization_id, self.model + named

    @property
    def shown_model(self) -> str:
        """What its client is told of as the model."""
        return self.told_model or self.model

    @property
    def tokens(self) -> int:
        """How many tokens are reserved."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Admitted:
    """The reservation stands.

    ``image_bytes`` is how much of what was asked for may be fetched, of the ``image_limit`` that there is in a minute;
    both are ``None`` where there is no such limit.
    """

    standing: Standing = UNLIMITED
    image_bytes: int | None = None
    image_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no reservation. ``message`` is for the client.

    ``retry_after_us`` is in how many microseconds the same request may be admitted; ``None`` where waiting does not
    help.
    """

    code: RefusalCode
    message: str
    retry_after_us: int | None
    standing: Standing


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a reserved request ended.

    ``begun`` is whether the model generated anything: if not, nothing is billed. ``output_tokens`` are those that were
    delivered, ``reasoning_tokens`` and ``guided_tokens`` some of them; ``cached_tokens`` are some of the
    ``input_tokens``. ``generated_tokens`` is what the model wrote, at least what was delivered. Times are milliseconds
    from the request's head. ``image_bytes`` were fetched; ``None`` where that is not known, which counts as all that
    was reserved. ``searches`` are the web searches that were made. ``attempts`` are the routes that were tried, as
    JSON; ``None`` where that is not known. ``final`` is whether these are the counts of the worker that served the
    request: only they correct what was settled in its place.
    """

    id: str
    outcome: str
    begun: bool
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    guided_tokens: int = 0
    generated_tokens: int = 0
    image_bytes: int | None = None
    first_token_ms: int | None = None
    total_ms: int = 0
    searches: int = 0
    attempts: str | None = None
    final: bool = True


@dataclass(frozen=True, slots=True)
class Settled:
    """What a settlement came to. ``price`` is in nano-units, of all records of the reservation together.

    ``known`` is whether there was such a reservation; if not, it can no longer be made.
    """

    price: int
    known: bool


@dataclass(frozen=True, slots=True)
class ImagesFetched:
    """Of a reservation's image bytes, only ``used`` were needed; the rest is given back before its settlement."""

    id: str
    used: int


Entry = ReservationRequest | ImagesFetched | Settlement
Outcome = Admitted | Refused | Settled | None
