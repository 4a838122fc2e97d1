"""From a complete request to the call that answers it: accept, render, clamp.

This is the heavy part of an exchange (parsing, templating, tokenizing up to megabytes of text); callers run it off the
event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sidecar.backends.triton.contracts.contract import Contract, Generation
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.models import ModelCatalog, ServedModel
from sidecar.generation.segments import Parser
from sidecar.generation.style import guided_parser
from sidecar.guidance.decision import Guidance, plan_guidance
from sidecar.guidance.schemas import Schema
from sidecar.images.image import Image, ImageRef
from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds, ulid
from sidecar.responses.json_text import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.limits import check_limits, check_size
from sidecar.surfaces.surface import Surface

# Headers of the client's request that Triton and its tracing may see.
_FORWARDED_HEADERS = ("x-request-id", "traceparent", "tracestate")
# Nucleus sampling with 0 keeps only the most probable token; runtimes take values above 0 only.
_SMALLEST_TOP_P = 1e-9


@dataclass(frozen=True, slots=True)
class Plan:
    """A request accepted: the call to make, once its ``images`` have been loaded, and the response to fill."""

    model: ServedModel
    contract: Contract
    generation: Generation
    images: Sequence[ImageRef]
    upstream_headers: Mapping[str, str]
    stream: bool
    parser: Parser
    parallel_calls: bool
    text_schema: Schema | None
    mirror_reasoning: bool
    ids: ResponseIds
    response: Json

    def message(self, images: Sequence[Image]) -> bytes:
        """The serialized ``ModelInferRequest`` with the loaded ``images``."""
        return self.contract.request(self.model.triton_model, replace(self.generation, images=images))


def make_plan(surface: Surface, catalog: ModelCatalog, event: RequestComplete, entropy: bytes) -> Plan:
    """The plan for a request.

    Raises:
        ApiError: the request is refused, its prompt does not fit, or its model is not ready.
    """
    check_size(event.body_bytes, catalog.max_request_bytes, "this node")
    request = surface.accept(event.headers, event.body)
    model = catalog.find(request.model)
    check_limits(request, event.body_bytes, model.limits)
    contract = model.contract
    if contract is None:
        raise ApiError("infer_backend_unavailable", "The model runtime is starting; try again shortly.")
    guidance = plan_guidance(request, contract.guides, model.unguided)
    prompt = model.renderer.render(
        request,
        now=datetime.fromtimestamp(event.unix_time, UTC),
        context_length=model.context_length,
        guided=guidance.guide is not None,
        demand=guidance.demand,
    )
    _check_images(prompt.images, contract.max_images)
    ids = ResponseIds(ulid(int(event.unix_time * 1000), entropy[:10]))
    generation = Generation(
        request_id=ids.response,
        prompt_ids=prompt.ids,
        prompt_text=prompt.runtime_text,
        max_tokens=_clamp_output(request, len(prompt.ids), model.context_length),
        temperature=1.0 if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else max(request.top_p, _SMALLEST_TOP_P),
        seed=int.from_bytes(entropy[10:18], "big"),
        end_ids=model.renderer.end_ids,
        stop=(*model.stop, *model.renderer.end_tokens) if contract.speaks_text else model.stop,
        guide=guidance.guide,
    )
    return Plan(
        model=model,
        contract=contract,
        generation=generation,
        images=prompt.images,
        upstream_headers={name: event.headers[name] for name in _FORWARDED_HEADERS if name in event.headers},
        stream=request.stream,
        parser=_parser(model, guidance, prompt.text),
        parallel_calls=request.parallel_tool_calls,
        text_schema=guidance.text_schema,
        mirror_reasoning=surface.mirrors_reasoning(request),
        ids=ids,
        response=surface.new_response(request, ids.response, int(event.unix_time)),
    )


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
