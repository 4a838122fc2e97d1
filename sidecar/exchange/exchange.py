"""One request's life, without I/O.

Two rules:

* The exchange never waits and never looks at a clock, a socket or a random source: whatever it needs comes with an
  event, whatever it wants done goes out as an action, and what went wrong ends as an :class:`ApiError`.
* It ends exactly once: with ``Reply`` while no head has been sent, with ``Finish`` after that, or because the client
  has gone. Events that come later change nothing.

States::

    WAITING --RequestComplete--> CALLING --first generated token--> ANSWERING --> DONE
      |  \\______ Reply ___________/ \\_____ Reply _____/   \\____ error event ___/
      `--> FETCHING --ImagesFetched--^

What a request is for comes first: all but a new response is answered at once, with a ``Reply``. A streamed answer's
head is held until the first generated token, a non-streamed one's until the last: a failure before that is a plain HTTP
error. After it, a stream ends with one ``error`` event.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from math import inf
from typing import assert_never

from sidecar.backends.triton import errors
from sidecar.backends.triton.contracts.contract import Decoder, FinishReason, Piece
from sidecar.backends.triton.errors import BackendError
from sidecar.backends.triton.reader import UpstreamReader
from sidecar.exchange.actions import Action, CallUpstream, FetchImages, Finish, SendBody, SendHead
from sidecar.exchange.answer import Answer
from sidecar.exchange.events import (
    Abort,
    ClientGone,
    Event,
    ImagesFetched,
    RequestComplete,
    Tick,
    UpstreamBytes,
    UpstreamEnd,
)
from sidecar.exchange.models import ModelCatalog
from sidecar.exchange.plan import Plan, make_plan
from sidecar.exchange.report import Report, Timing
from sidecar.exchange.resources import answer_at_once
from sidecar.generation.stops import StopStrings
from sidecar.guidance.schemas import fits
from sidecar.images.image import Image
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.json_text import Json, json_bytes
from sidecar.responses.reply import Reply
from sidecar.responses.usage import Usage
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.surface import Surface

KEEP_ALIVE = b": keep-alive\n\n"


class State(Enum):
    """Where an exchange is; see the module's picture."""

    WAITING = auto()
    FETCHING = auto()
    CALLING = auto()
    ANSWERING = auto()
    DONE = auto()


class Exchange:
    """One request and its answer.

    ``entropy`` is 18 random bytes, for ids and the sampling seed. ``keep_alive`` is how long a stream may be silent
    before a comment is sent, in seconds.
    """

    def __init__(
        self, surface: Surface, catalog: ModelCatalog, *, node: str, entropy: bytes, keep_alive: float
    ) -> None:
        self._surface = surface
        self._catalog = catalog
        self._node = node
        self._entropy = entropy
        self._keep_alive = keep_alive
        self._state = State.WAITING
        self._request_id = ""
        self._usage = Usage()
        self._timing = Timing()
        self._outcome = "client_gone"
        self._backend_error: BackendError | None = None
        self._plan: Plan | None = None
        self._decoder: Decoder
        self._broke_schema = False
        self._upstream_at = 0.0
        self._sent_at = 0.0

    @property
    def max_request_bytes(self) -> int:
        """How much of a request's body is of use; of a larger one only the size counts."""
        return self._catalog.max_request_bytes

    @property
    def due_at(self) -> float:
        """When a ``Tick`` will change something, on the clock of the events; infinity while none will."""
        return min(self._silent_at, self._keep_alive_at)

    @property
    def done(self) -> bool:
        """Whether the exchange is over."""
        return self._state is State.DONE

    @property
    def backend_error(self) -> BackendError | None:
        """The model runtime's failure that ended the exchange. Its words may hold content."""
        return self._backend_error

    def report(self) -> Report:
        """What is known of the exchange, without any of its content; complete once it is done."""
        planned = self._plan is not None
        return Report(
            outcome=self._outcome,
            model=self._plan.model.name if self._plan else None,
            stream=self._plan.stream if self._plan else None,
            usage=self._usage,
            timing=self._timing,
            counted=planned and self._decoder.counted and self._usage.output_tokens > 0,
            broke_schema=self._broke_schema,
            broken_characters=self._decoder.broken_characters if planned else 0,
        )

    def handle(self, event: Event) -> list[Action]:
        """What to do about ``event``, in order. Never raises :class:`ApiError`."""
        if self._state is State.DONE:
            return []
        try:
            return self._dispatch(event)
        except ApiError as error:
            return self._fail(error)

    def _dispatch(self, event: Event) -> list[Action]:
        match event:
            case UpstreamBytes():
                return self._read_upstream(event)
            case Tick():
                return self._tick(event.at)
            case UpstreamEnd():
                return self._end_upstream(event)
            case RequestComplete():
                return self._begin(event)
            case ImagesFetched():
                return self._take_images(event)
            case ClientGone():
                self._state = State.DONE
                return []
            case Abort():
                return self._fail(event.error)
            case _:
                assert_never(event)

    def _begin(self, event: RequestComplete) -> list[Action]:
        self._timing.head_at = event.head_at
        self._request_id = event.headers.get("x-request-id", "")
        target = self._surface.target(event.headers)
        if target.operation is not Operation.CREATE_RESPONSE:
            return self._reply(answer_at_once(target, self._surface, self._catalog, self._node))
        self._plan = plan = make_plan(self._surface, self._catalog, event, self._entropy)
        self._usage.input_tokens = len(plan.generation.prompt_ids)
        self._decoder = plan.contract.decoder(plan.generation, plan.model.renderer)
        self._upstream = UpstreamReader(self._decoder)
        self._writer = EventWriter(plan.ids, plan.response, mirror_reasoning=plan.mirror_reasoning)
        self._answer = Answer(
            self._writer,
            StopStrings(plan.generation.stop),
            plan.parser,
            self._usage,
            parallel_calls=plan.parallel_calls,
        )
        if plan.images:
            self._state = State.FETCHING
            return [FetchImages(plan.images)]
        return self._call((), event.head_at)

    def _take_images(self, event: ImagesFetched) -> list[Action]:
        if isinstance(event.images, ApiError):
            raise event.images
        return self._call(event.images, event.at)

    def _call(self, images: Sequence[Image], at: float) -> list[Action]:
        self._upstream_at = at
        self._state = State.CALLING
        plan = self._must_plan
        return [CallUpstream(plan.message(images), plan.upstream_headers)]

    def _read_upstream(self, event: UpstreamBytes) -> list[Action]:
        self._upstream_at = event.at
        actions: list[Action] = []
        chunks: list[bytes] = []
        failure: ApiError | None = None
        try:
            for piece in self._upstream.feed(event.data):
                if (piece.tokens or piece.text) and self._state is State.CALLING:
                    actions = self._open(event.at)
                chunks.append(self._answer.feed(piece))
                if self._answer.stopped:
                    break
        except ApiError as error:
            # What was generated before the failure is the client's, and billed.
            failure = error
        actions += self._send(b"".join(chunks), event.at)
        if failure is not None:
            return actions + self._fail(failure)
        if self._answer.stopped:
            return actions + self._complete("stop", self._decoder.end(), event.at)
        return actions

    def _end_upstream(self, event: UpstreamEnd) -> list[Action]:
        held_back = self._upstream.end(event.whole, event.http_status, event.grpc)
        assert self._decoder.finish_reason is not None, "a decoder at its end knows why"
        return self._complete(self._decoder.finish_reason, held_back, event.at)

    def _open(self, at: float) -> list[Action]:
        """The answer begins: a stream's head and opening events go out."""
        self._state = State.ANSWERING
        self._timing.first_token_at = at
        if not self._must_plan.stream:
            return []
        return [SendHead(self._stream_head()), *self._send(self._writer.start(), at)]

    def _send(self, events: bytes, at: float) -> list[Action]:
        """Send whole events, if the answer is a stream and there are any."""
        if not (events and self._must_plan.stream):
            return []
        self._sent_at = at
        return [SendBody(events)]

    def _complete(self, finish_reason: FinishReason, held_back: Piece, at: float) -> list[Action]:
        self._settle_usage()
        self._timing.model_done_at, self._timing.done_at = self._upstream_at, at
        actions = self._open(at) if self._state is State.CALLING else []
        events = self._answer.close(held_back, finish_reason)
        self._check_text(finish_reason)
        response = self._final_response(finish_reason)
        self._outcome = response["status"]
        if self._must_plan.stream:
            actions += self._send(events + self._writer.finish(response), at)
        else:
            body = json_bytes(response)
            actions += [SendHead(self._json_head(len(body))), SendBody(body)]
        self._state = State.DONE
        return [*actions, Finish()]

    def _check_text(self, finish_reason: FinishReason) -> None:
        """Look whether whole text fits the schema that it was to fit; no contract promises that guides are kept to.

        Raises:
            ApiError: it does not, and nothing of it has been sent yet.
        """
        plan, text = self._must_plan, self._answer.text
        if plan.text_schema is None or text is None or finish_reason != "stop" or fits(text, plan.text_schema):
            return
        self._broke_schema = True
        if not plan.stream:
            message = "The model's answer does not fit the requested format."
            raise ApiError("infer_backend_unavailable", message, retry=False)

    def _settle_usage(self) -> None:
        """What the runtime told about the prompt replaces what was assumed."""
        decoder = self._decoder
        self._usage.cached_tokens = decoder.cached_tokens
        if decoder.input_tokens is not None:
            self._usage.input_tokens = decoder.input_tokens

    def _final_response(self, finish_reason: FinishReason) -> Json:
        plan = self._must_plan
        response = {**plan.response, **self._answer.result(finish_reason)}
        if finish_reason == "stop":
            response["completed_at"] = plan.response["created_at"] + int(self._timing.total)
        timing = self._timing.stream_ms() if plan.stream else self._timing.whole_ms()
        return {**response, **self._surface.extension(self._node, timing)}

    def _tick(self, at: float) -> list[Action]:
        if at >= self._silent_at:
            raise errors.timeout()
        if at >= self._keep_alive_at:
            self._sent_at = at
            return [SendBody(KEEP_ALIVE)]
        return []

    @property
    def _silent_at(self) -> float:
        """When the model will have been silent for too long."""
        match self._state:
            case State.CALLING:
                return self._upstream_at + self._must_plan.model.first_token_timeout
            case State.ANSWERING:
                return self._upstream_at + self._must_plan.model.token_timeout
        return inf

    @property
    def _keep_alive_at(self) -> float:
        """When a stream will need a comment."""
        return self._sent_at + self._keep_alive if self._streaming else inf

    @property
    def _streaming(self) -> bool:
        """Whether the head of a stream has been sent and its end has not."""
        return self._state is State.ANSWERING and self._must_plan.stream

    def _fail(self, error: ApiError) -> list[Action]:
        if isinstance(error, BackendError):
            self._backend_error = error
        if not self._streaming:
            return self._reply(self._surface.error_reply(error, self._request_id))
        self._outcome = error.code
        self._state = State.DONE
        events = b""
        if self._surface.failed_event:
            failed = {"status": "failed", "error": {"code": error.failed_code, "message": error.message}}
            events = self._writer.finish(
                {**self._must_plan.response, **failed, "output": self._writer.output, "usage": self._usage.to_json()}
            )
        members = self._surface.error_members(error, self._request_id)
        return [SendBody(events + self._writer.error(error, members)), Finish()]

    def _reply(self, reply: Reply) -> list[Action]:
        self._outcome = reply.outcome
        self._state = State.DONE
        return [reply]

    @property
    def _must_plan(self) -> Plan:
        assert self._plan is not None, "an answer belongs to a planned request"
        return self._plan

    def _stream_head(self) -> dict[str, str]:
        return {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "server-timing": f"ttft;dur={self._timing.ttft_ms:.1f}",
        }

    def _json_head(self, length: int) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "content-length": str(length),
            "server-timing": f"ttft;dur={self._timing.ttft_ms:.1f}, total;dur={self._timing.total * 1000:.1f}",
        }
