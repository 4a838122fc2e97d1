"""The ask that comes first: from a complete request to the call that answers it. Accept, render, clamp.

This is the heavy part of an exchange: parsing, templating and tokenizing up to megabytes of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self

from sidecar.backends.triton import call
from sidecar.backends.triton.contracts.contract import Contract, Generation
from sidecar.backends.triton.errors import STARTING
from sidecar.backends.triton.frames import frame
from sidecar.backends.triton.reader import TritonReader
from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.catalog import Catalog, ServedModel, ServedNative
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.compaction import Compaction, CompactionLive, asked_to_summarise, kept_items
from sidecar.exchange.direct import check_vendor, directives_of, lowered
from sidecar.exchange.earlier import Continued, Earlier, own_param
from sidecar.exchange.forwarded import forwarded_headers
from sidecar.exchange.keeping import check_stores, keeping_of
from sidecar.exchange.live import LiveAnswer
from sidecar.exchange.native_plan import native_plan
from sidecar.exchange.planned import Plan
from sidecar.exchange.report import TRITON, Attempt, Report
from sidecar.exchange.triton_live import TritonLive
from sidecar.generation.segments import Parser
from sidecar.generation.style import guided_parser
from sidecar.generation.visible import VisibleOnly
from sidecar.guidance.decision import Guidance, plan_guidance
from sidecar.guidance.guides import Guide
from sidecar.images.image import Image, ImageRef
from sidecar.prompts.renderer import Prompt
from sidecar.responses.compaction import uncompacted
from sidecar.responses.compaction_events import CompactionWriter
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.json_text import Json
from sidecar.responses.open_calls import CallType
from sidecar.responses.open_items import ReasoningForm
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.sealing import TeamSeal
from sidecar.surfaces.compaction import with_trigger
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.limits import check_limits, check_size
from sidecar.surfaces.names import Named, Names
from sidecar.surfaces.surface import Surface

# Nucleus sampling with 0 keeps only the most probable token; runtimes take values above 0 only.
_SMALLEST_TOP_P = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonPlan(Plan):
    """A request for a model of Triton's.

    ``refs`` are its images; ``body`` is the upstream's request, ``None`` while it waits for them. ``opened`` tells that
    the answer begins inside the reasoning. ``called_as`` has the tools by name whose calls are not those of functions;
    ``compaction`` is there where the answer is one.
    """

    model: ServedModel
    contract: Contract
    generation: Generation
    refs: Sequence[ImageRef]
    body: bytes | None
    opened: bool
    parallel_calls: bool
    guidance: Guidance
    reasoning: ReasoningForm
    called_as: Mapping[str, CallType] = field(default_factory=dict)
    compaction: Compaction | None = None

    @property
    def input_tokens(self) -> int:
        """Those of the prompt."""
        return len(self.generation.prompt_ids)

    @property
    def most_tokens(self) -> int:
        """As many as were asked for, within what the context leaves."""
        return self.generation.max_tokens

    @property
    def guided(self) -> bool:
        """See :class:`Plan`."""
        return self.generation.guide is not None or self.generation.call_guide is not None

    @property
    def unchecked_guides(self) -> Sequence[Guide]:
        """See :class:`Plan`."""
        return self.guidance.unchecked

    @property
    def images(self) -> Sequence[ImageRef]:
        """Those that the request names."""
        return self.refs

    def body_with(self, images: Sequence[Image]) -> bytes:
        """See :class:`Plan`."""
        return _body(self.model, self.contract, replace(self.generation, images=images))

    @property
    def remedy(self) -> str:
        """As the contract says."""
        return self.contract.remedy

    def parser(self) -> Parser:
        """A fresh parser for the answer."""
        if self.guidance.guide is not None:
            return guided_parser(self.guidance.functions)
        parser = self.model.style.parser(self.guidance.functions, opened=self.opened)
        return parser if self.compaction is None else VisibleOnly(parser)

    def writer(self) -> EventWriter:
        """A fresh writer of the answer's events."""
        if self.compaction is not None:
            return CompactionWriter(self.ids, self.response, self.compaction.seal)
        return EventWriter(self.ids, self.response, self.reasoning, self.called_as)

    def reader(self) -> TritonReader:
        """A fresh reader of the answer."""
        return TritonReader(self.contract.decoder(self.generation, self.model.renderer))

    def live(self, body: bytes | None, report: Report, at: float) -> LiveAnswer:
        """See :class:`Plan`."""
        body = self.body if body is None else body
        assert body is not None, "images are loaded before the call"
        report.attempts.append(Attempt(TRITON))
        upstream = CallUpstream(call.PATH, call.CONTENT_TYPE, self.upstream_headers, body)
        return (TritonLive if self.compaction is None else CompactionLive)(self, upstream, report)


@dataclass(frozen=True, slots=True)
class Prepare(Ask[Plan | Continued]):
    """Make the plan of a request, or find out that it continues a stored response."""

    facts: Facts
    earlier: Earlier | None = None

    @classmethod
    def needed(cls, facts: Facts) -> Self:
        """Always."""
        return cls(facts)

    def plan(self) -> Plan | Continued:
        """The plan: a pure function of the facts and of the conversation so far, safe in any thread.

        Raises:
            ApiError: the request is refused, its prompt does not fit, or its model is not ready.
        """
        return make_plan(self.facts, self.earlier)


def make_plan(facts: Facts, earlier: Earlier | None = None) -> Plan | Continued:
    """The plan for a request; of one that continues a conversation only with that, which comes ``earlier``.

    Raises:
        ApiError: the request is refused, its prompt does not fit, or its model is not ready.
    """
    surface, catalog, event, entropy = facts.surface, facts.catalog, facts.request, facts.entropy
    check_size(event.body_bytes, most_bytes(surface, catalog), surface.place)
    names, team = catalog.names(surface), event.caller.organization
    values, before = surface.read(event.headers, event.body), earlier.items() if earlier is not None else None
    compacts = surface.target(event.headers).operation is Operation.COMPACT_RESPONSE
    directives = directives_of(facts)
    if compacts:
        values = with_trigger(values, surface.unsupported)
    native = _native_model(values, names, team, catalog)
    # An upstream's compaction knows no limit.
    if directives.max_output_tokens is not None and not (compacts and native is not None):
        values = _lowered(values, surface, names, team, directives.max_output_tokens)
    if native is not None:
        return native_plan(facts, values, before, *native, compacts=compacts)
    request = surface.check(values, lambda name: names.preset(name, team), before)
    check_stores(surface, request)
    attribution = surface.attribution(event.headers, request)
    named = names.find(request.model, team)
    model = catalog.model(named.model)
    assert isinstance(model, ServedModel), "the others have been planned"
    check_vendor(directives, named)
    settings, contract = model.settings, model.contract
    check_limits(request, event.body_bytes, settings.limits)
    if contract is None:
        raise ApiError(STARTING.code, STARTING.message)
    if model.outage is not None:
        raise ApiError(model.outage.code, model.outage.message)
    if request.previous_response_id is not None and before is None:
        return Continued(request.previous_response_id)
    before = before or []
    ids = facts.ids
    seal = TeamSeal(surface.sealer, team) if surface.sealer is not None else None
    conversation, compaction = uncompacted(request.input, seal, lambda path: own_param(path, len(before))), None
    if conversation is not None:
        request = asked_to_summarise(request, conversation)
        if conversation.asks and seal is not None:
            compaction = Compaction(seal, kept_items(before, values["input"], ids) if compacts else None)
    calls = model.style.calls
    guidance = plan_guidance(
        request,
        contract.guides,
        settings.unguided,
        framing=calls.framing if calls else None,
        call_guide_form=contract.call_guide_form,
    )
    prompt = model.renderer.render(
        request,
        now=datetime.fromtimestamp(event.unix_time, UTC),
        context_length=settings.context_length,
        guided=guidance.guide is not None,
        demand=guidance.demand,
    )
    places = conversation.places if conversation is not None else None
    images = [replace(image, param=own_param(image.param, len(before), places)) for image in prompt.images]
    _check_images(images, contract.max_images)
    generation = Generation(
        request_id=ids.response,
        prompt_ids=prompt.ids,
        prompt_text=prompt.runtime_text,
        max_tokens=_clamp_output(request, len(prompt.ids), settings.context_length),
        temperature=1.0 if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else max(request.top_p, _SMALLEST_TOP_P),
        seed=int.from_bytes(entropy[10:18], "big"),
        end_ids=model.renderer.end_ids,
        stop=(*settings.stop, *model.renderer.end_tokens) if contract.speaks_text else settings.stop,
        guide=guidance.guide,
        call_guide=guidance.call_guide,
    )
    return TritonPlan(
        model=model,
        contract=contract,
        generation=generation,
        refs=images,
        body=None if images else _body(model, contract, generation),
        upstream_headers=forwarded_headers(event.headers),
        stream=request.stream,
        opened=model.style.opens_reasoning(prompt.text),
        parallel_calls=request.parallel_tool_calls,
        guidance=guidance,
        reasoning=surface.reasoning_form(request),
        ids=ids,
        response=surface.new_response(
            _as_applied(request, named.told, guidance, prompt), ids.response, int(event.unix_time)
        ),
        output_limited=request.max_output_tokens is not None,
        attribution=attribution,
        called_as={tool.name: tool.called_as for tool in request.tools if tool.called_as != "function_call"},
        compaction=compaction,
        endpoint="responses.compact" if compacts else "responses",
        keeping=None if compacts else keeping_of(surface, request, event.caller, ids, values["input"], before),
    )


def _native_model(values: Json, names: Names, team: str, catalog: Catalog) -> tuple[Named, ServedNative] | None:
    """The model that a request asks for, where native upstreams serve it; other faults of its name come later."""
    name = values.get("model")
    try:
        named = names.find(name, team) if isinstance(name, str) else None
    except ApiError:
        named = None
    model = catalog.model(named.model) if named is not None else None
    return (named, model) if named is not None and isinstance(model, ServedNative) else None


def _lowered(values: Json, surface: Surface, names: Names, team: str, most: int) -> Json:
    model = values.get("model")
    preset = names.preset(model, team) if isinstance(model, str) else {}
    default = surface.request_model.model_fields["max_output_tokens"].default
    return lowered(values, preset.get("max_output_tokens"), default, most)


def most_bytes(surface: Surface, catalog: Catalog) -> int:
    """The largest body that the surface takes for any model."""
    of_surface = surface.bounds.request_bytes
    return catalog.max_request_bytes if of_surface is None else min(of_surface, catalog.max_request_bytes)


def _as_applied(request: ResponsesRequest, model: str, guidance: Guidance, prompt: Prompt) -> ResponsesRequest:
    """The request as a response echoes it: the model's name, strictness and effort are told as they were applied."""
    strict = {tool.name: bool(tool.strict) and guidance.strict[tool.name] for tool in request.tools}
    tools = [tool.model_copy(update={"strict": strict[tool.name]}) for tool in request.tools]
    effort = prompt.applied_effort or request.reasoning.effort
    reasoning = request.reasoning.model_copy(update={"effort": effort})
    return request.model_copy(update={"model": model, "tools": tools, "reasoning": reasoning})


def _body(model: ServedModel, contract: Contract, generation: Generation) -> bytes:
    return frame(contract.request(model.settings.triton_model, generation))


def _check_images(images: Sequence[ImageRef], limit: int) -> None:
    """Refuse more images than the model's contract has room for."""
    if len(images) > limit:
        most = f"at most {limit} image{'s' if limit > 1 else ''} in a request." if limit else "text only, no images."
        raise ApiError("invalid_request", f"This model takes {most}", images[limit].param)


def _clamp_output(request: ResponsesRequest, prompt_tokens: int, context_length: int) -> int:
    """How many tokens may be generated: what was asked for, within what the context leaves."""
    room = context_length - prompt_tokens
    if room < 1:
        raise ApiError(
            "context_length_exceeded",
            f"The prompt has {prompt_tokens} tokens; this model's context holds {context_length}, answer included.",
            "input",
        )
    return room if request.max_output_tokens is None else min(request.max_output_tokens, room)
