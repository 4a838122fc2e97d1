"""The ask that comes first: from a complete request to the call that answers it. Accept, render, clamp.

This is the heavy part of an exchange: parsing, templating and tokenizing up to megabytes of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from sidecar.backends.triton import call
from sidecar.backends.triton.contracts.contract import Contract, Generation
from sidecar.backends.triton.frames import frame
from sidecar.backends.triton.reader import TritonReader
from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.catalog import ServedModel
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.forwarded import forwarded_headers
from sidecar.generation.segments import Parser
from sidecar.generation.style import guided_parser
from sidecar.guidance.decision import Guidance, plan_guidance
from sidecar.images.image import Image, ImageRef
from sidecar.prompts.renderer import Prompt
from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds, ulid
from sidecar.responses.json_text import Json
from sidecar.responses.open_items import ReasoningForm
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.limits import check_limits, check_size

# Nucleus sampling with 0 keeps only the most probable token; runtimes take values above 0 only.
_SMALLEST_TOP_P = 1e-9
_MOST_OF_A_NAME = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """A request accepted: the call to make, once its ``images`` have been loaded, and the response to fill.

    ``body`` is the upstream's request; ``None`` while it waits for images. ``output_limited`` is whether the client
    named a limit for the answer. ``end_user`` is whom it asks for, as it said itself.
    """

    model: ServedModel
    contract: Contract
    generation: Generation
    images: Sequence[ImageRef]
    body: bytes | None
    upstream_headers: Mapping[str, str]
    stream: bool
    parser: Parser
    parallel_calls: bool
    guidance: Guidance
    reasoning: ReasoningForm
    ids: ResponseIds
    response: Json
    output_limited: bool
    end_user: str | None

    @property
    def guided(self) -> bool:
        """Whether the runtime is held to a form, so that each token of the answer is one that its guide allows."""
        return self.generation.guide is not None or self.generation.call_guide is not None

    def body_with(self, images: Sequence[Image]) -> bytes:
        """The upstream's request with the loaded ``images``."""
        return _body(self.model, self.contract, replace(self.generation, images=images))

    def call(self, body: bytes) -> CallUpstream:
        """The call of the upstream with ``body``."""
        reader = TritonReader(self.contract.decoder(self.generation, self.model.renderer))
        return CallUpstream(call.PATH, call.CONTENT_TYPE, self.upstream_headers, body, reader)


@dataclass(frozen=True, slots=True)
class Prepare(Ask[Plan]):
    """Make the plan of a request."""

    facts: Facts

    @classmethod
    def needed(cls, facts: Facts) -> Self:
        """Always."""
        return cls(facts)

    def plan(self) -> Plan:
        """The plan: a pure function of the facts, safe in any thread.

        Raises:
            ApiError: the request is refused, its prompt does not fit, or its model is not ready.
        """
        return make_plan(self.facts)


def make_plan(facts: Facts) -> Plan:
    """The plan for a request.

    Raises:
        ApiError: the request is refused, its prompt does not fit, or its model is not ready.
    """
    surface, catalog, event, entropy = facts.surface, facts.catalog, facts.request, facts.entropy
    check_size(event.body_bytes, catalog.max_request_bytes, "this node")
    request = surface.accept(event.headers, event.body)
    model = catalog.find(request.model)
    settings, contract = model.settings, model.contract
    check_limits(request, event.body_bytes, settings.limits)
    if contract is None:
        raise ApiError("infer_backend_unavailable", "The model runtime is starting; try again shortly.")
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
    _check_images(prompt.images, contract.max_images)
    ids = ResponseIds(ulid(int(event.unix_time * 1000), entropy[:10]))
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
    return Plan(
        model=model,
        contract=contract,
        generation=generation,
        images=prompt.images,
        body=None if prompt.images else _body(model, contract, generation),
        upstream_headers=forwarded_headers(event.headers),
        stream=request.stream,
        parser=_parser(model, guidance, prompt.text),
        parallel_calls=request.parallel_tool_calls,
        guidance=guidance,
        reasoning=surface.reasoning_form(request),
        ids=ids,
        response=surface.new_response(_as_applied(request, guidance, prompt), ids.response, int(event.unix_time)),
        output_limited=request.max_output_tokens is not None,
        end_user=_end_user(request),
    )


def _end_user(request: ResponsesRequest) -> str | None:
    """The client's own name for its user; ``None`` where there is none that a table could show."""
    name = request.safety_identifier or request.user or ""
    return name[:_MOST_OF_A_NAME] if name.isprintable() and name else None


def _as_applied(request: ResponsesRequest, guidance: Guidance, prompt: Prompt) -> ResponsesRequest:
    """The request as a response echoes it: strictness and effort are told as they were applied."""
    strict = {tool.name: bool(tool.strict) and guidance.strict[tool.name] for tool in request.tools}
    tools = [tool.model_copy(update={"strict": strict[tool.name]}) for tool in request.tools]
    effort = prompt.applied_effort or request.reasoning.effort
    reasoning = request.reasoning.model_copy(update={"effort": effort})
    return request.model_copy(update={"tools": tools, "reasoning": reasoning})


def _body(model: ServedModel, contract: Contract, generation: Generation) -> bytes:
    return frame(contract.request(model.settings.triton_model, generation))


def _check_images(images: Sequence[ImageRef], limit: int) -> None:
    """Refuse more images than the model's contract has room for."""
    if len(images) > limit:
        most = f"at most {limit} image{'s' if limit > 1 else ''} in a request." if limit else "text only, no images."
        raise ApiError("invalid_request", f"This model takes {most}", images[limit].param)


def _parser(model: ServedModel, guidance: Guidance, prompt_text: str) -> Parser:
    if guidance.guide is not None:
        return guided_parser(guidance.functions)
    return model.style.parser(guidance.functions, prompt_text)


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
