"""What a surface is: which parameters it takes and refuses, in what order it says so, and the shape of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from sidecar.config.model import AnyModelConfig
from sidecar.config.models import SurfaceSettings
from sidecar.responses.body import parse_json_body
from sidecar.responses.errors import ApiError
from sidecar.responses.items import input_list
from sidecar.responses.json_text import Json
from sidecar.responses.open_items import ReasoningForm
from sidecar.responses.reply import Reply
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.sealing import Sealer, unseal_reasoning
from sidecar.responses.validation import TypeWords, to_api_error
from sidecar.responses.wording import shown
from sidecar.surfaces.attribution import Attribution, by_body
from sidecar.surfaces.bounds import UNBOUNDED, Bounds
from sidecar.surfaces.credentials import KEYS_AND_SESSIONS, Credentials
from sidecar.surfaces.endpoints import Endpoint, Operation, Target, find_target
from sidecar.surfaces.idempotency import IDEMPOTENCY_HEADER, idempotency_key
from sidecar.surfaces.names import Names, OwnNames, with_defaults
from sidecar.surfaces.parameters import Accepted, Ignored, Parameter, find_member

Check = Callable[[ResponsesRequest], None]
"""A rule of a surface on a request that is well-formed; it raises :class:`ApiError`."""

RENAMED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
"""Parameters of the chat completions API, and where the same is said in a Responses request."""


def openai_error(error: ApiError, request_id: str) -> Json:
    """The members of ``error`` as OpenAI has them."""
    return {**error.fields()}


@dataclass(frozen=True, eq=False)
class Surface:
    """The policy of one API surface.

    What it takes: ``endpoints`` are its methods and paths. ``request_model`` reads its requests; it is generic over the
    items, tools and tool choices, and ``type_words`` are the surface's words for some of those it does not take.
    ``parameters`` is the table of what becomes of each parameter, ``unsupported`` the sentence for those that it does
    not take, with ``{name}`` in it. ``checks`` are further rules, run in order on a request that passed the table.

    What it answers: ``new_response`` makes the response object of a request from its id and creation time (seconds
    since the epoch); ``extension`` makes the members that the final response has beyond it, from the node's name,
    timings in milliseconds and the route that the answer came by: ``local``, or ``gateway`` for a native upstream's.
    ``error_members`` are those of an error body, from the error and the request's id;
    ``codes`` are the codes it can have. ``schemas`` are the JSON Schemas of what this surface's answers have of their
    own, by name: ``Response``, and any that replaces a general one. ``title`` and ``description`` head its documents,
    ``example`` is a request for them.

    ``credentials`` are those that it takes, ``names`` makes what it calls the models, ``attribution`` finds out whom a
    request is counted for, from its headers and body; it may raise :class:`ApiError`. ``bounds`` are what one request
    may take, set by ``place`` (in refusals: «this node»); ``noun`` is what serves it. ``interrupted`` is the code of
    every stream that breaks off; without it each failure has its own. ``headers`` are the request headers that mean
    something, each with what. ``tells_notes`` is whether the list of models says how they are served.

    ``settings`` are the operator's; ``sealer`` seals reasoning, where they want that, and reads it when it comes back.
    ``stores`` is whether responses can be stored, ``directed`` whether its teams have directives. ``native`` reads
    requests for models of native upstreams, whose answers pass through, and opens their responses; without it they are
    read as others are, and of the upstream's response only what the answer decides is told.
    """

    title: str
    description: str
    endpoints: tuple[Endpoint, ...]
    request_model: type[ResponsesRequest[Any, Any, Any]]
    parameters: tuple[Parameter, ...]
    unsupported: str
    codes: tuple[str, ...]
    new_response: Callable[[ResponsesRequest, str, int], Json]
    extension: Callable[[str, Mapping[str, float], str], Json]
    schemas: Mapping[str, Json]
    type_words: TypeWords
    example: Json
    checks: tuple[Check, ...] = ()
    error_members: Callable[[ApiError, str], Json] = openai_error
    credentials: Credentials = KEYS_AND_SESSIONS
    names: Callable[[Sequence[AnyModelConfig]], Names] = OwnNames
    attribution: Callable[[Mapping[str, str], ResponsesRequest], Attribution] = by_body
    bounds: Bounds = UNBOUNDED
    noun: str = "node"
    place: str = "this node"
    interrupted: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    tells_notes: bool = True
    settings: SurfaceSettings = field(default_factory=SurfaceSettings)
    sealer: Sealer | None = None
    stores: bool = False
    native: Surface | None = None
    directed: bool = False

    def target(self, headers: Mapping[str, str]) -> Target:
        """What a request is for, by ``:method`` and ``:path``; raises :class:`ApiError` where there is nothing."""
        return find_target(self.endpoints, headers[":method"], headers[":path"])

    def accept(
        self, headers: Mapping[str, str], body: bytes, preset: Callable[[str], Mapping[str, Any]] = lambda model: {}
    ) -> ResponsesRequest:
        """Read a request, or raise :class:`ApiError` with the first fault a client should mend.

        ``headers`` have lower-case names. Faults come in OpenAI's order: media type, JSON, then as :meth:`check` says.
        """
        return self.check(self.read(headers, body), preset)

    def read(self, headers: Mapping[str, str], body: bytes) -> Json:
        """The parameters of a request as they were sent; raises :class:`ApiError` where its body is no JSON object, or
        its idempotency key cannot be one."""
        self.idempotency_key(headers)
        check_media_type(headers)
        return parse_json_body(body)

    def check(
        self,
        values: Json,
        preset: Callable[[str], Mapping[str, Any]] = lambda model: {},
        earlier: Sequence[Json] | None = None,
    ) -> ResponsesRequest:
        """The request with these parameters, or :class:`ApiError` with the first fault a client should mend.

        ``preset`` tells what a request for a model takes for parameters left out. ``earlier`` are the items of the
        conversation that it continues; until they are known, what depends on them is not looked at. Faults come in
        OpenAI's order: ``model`` and ``input``, parameters that are not taken, the others, then values that the table
        refuses and the surface's own checks.
        """
        if isinstance(model := values.get("model"), str):
            values = with_defaults(values, preset(model))
        if earlier is not None:
            values = {**values, "input": [*earlier, *input_list(values["input"])]}
        try:
            request = self.request_model.model_validate(values)
        except ValidationError as invalid:
            error = to_api_error(invalid, self.type_words)
            if error.param not in ("model", "input"):
                self._refuse_unread(values)
            raise error from None
        self._refuse_unread(values)
        for row in self._demanding:
            value = find_member(request, row.name)
            if value is not None and (fault := row.fault(value, self.unsupported)):
                raise fault
        if request.previous_response_id is not None and earlier is None:
            return request
        for check in self.checks:
            check(request)
        if self._seals is not None:
            return request.model_copy(update={"input": unseal_reasoning(request.input, self._seals)})
        return request

    def idempotency_key(self, headers: Mapping[str, str]) -> str | None:
        """The idempotency key of a request, ``None`` where it has none or the header means nothing here.

        Raises:
            ApiError: as :func:`sidecar.surfaces.idempotency.idempotency_key`.
        """
        return idempotency_key(headers, kept=self.stores) if IDEMPOTENCY_HEADER in self.headers else None

    def reasoning_form(self, request: ResponsesRequest) -> ReasoningForm:
        """How the response to ``request`` shows its reasoning."""
        summary = request.reasoning.summary or request.reasoning.generate_summary
        sealed = self._seals if "reasoning.encrypted_content" in request.include else None
        return ReasoningForm(
            mirrored=self.settings.reasoning_summary == "mirror" and summary is not None,
            seal=sealed.seal if sealed else None,
        )

    def in_stream(self, error: ApiError) -> ApiError:
        """``error`` as a stream that has begun tells it."""
        return error if self.interrupted is None else ApiError(self.interrupted, error.message, error.param)

    def error_reply(self, error: ApiError, request_id: str) -> Reply:
        """The plain HTTP error of this surface."""
        return error.reply(self.error_members(error, request_id))

    @property
    def base(self) -> str:
        """The path that clients take for the API's root: what stands before ``/responses``."""
        create = next(endpoint for endpoint in self.endpoints if endpoint.operation is Operation.CREATE_RESPONSE)
        return create.path.removesuffix("/responses")

    @property
    def has_stored_responses(self) -> bool:
        """Whether there are endpoints for responses that are stored, be they stored here or not."""
        return any(endpoint.operation is Operation.RETRIEVE_RESPONSE for endpoint in self.endpoints)

    @property
    def has_request_log(self) -> bool:
        """Whether there are endpoints for requests that were made before."""
        return any(endpoint.operation is Operation.LIST_REQUESTS for endpoint in self.endpoints)

    @property
    def compacts(self) -> bool:
        """Whether there is an endpoint that compacts a conversation."""
        return any(endpoint.operation is Operation.COMPACT_RESPONSE for endpoint in self.endpoints)

    @property
    def _seals(self) -> Sealer | None:
        return self.sealer if self.settings.encrypted_reasoning == "sealed" else None

    @cached_property
    def _demanding(self) -> tuple[Parameter, ...]:
        """The rows that may refuse what the request model has read, in the order in which they are looked at."""
        fields = self.request_model.model_fields
        read = (row for row in self.parameters if row.name.partition(".")[0] in fields)
        return tuple(row for row in read if not isinstance(row.treatment, Accepted | Ignored))

    @cached_property
    def _top_level(self) -> Mapping[str, Parameter]:
        return {row.name: row for row in self.parameters if row.top_level}

    def _refuse_unread(self, values: Mapping[str, Any]) -> None:
        """Refuse what is not in the table, or in it for its harmless values only."""
        for name, value in values.items():
            if value is None:
                continue
            row = self._top_level.get(name)
            if row is None:
                hint = f"; use {RENAMED[name]}" if name in RENAMED else ""
                raise ApiError(
                    "unsupported_parameter", self.unsupported.format(name=shown(name)) + hint, param=shown(name)
                )
            if name not in self.request_model.model_fields and (fault := row.fault(value, self.unsupported)):
                raise fault


def check_media_type(headers: Mapping[str, str]) -> None:
    """Take plain JSON bodies only; raises :class:`ApiError` ``unsupported_media_type`` for all others."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise ApiError("unsupported_media_type", "expected Content-Type: application/json")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ApiError("unsupported_media_type", "expected a body without Content-Encoding")
