"""From a complete request to the calls that may answer it, where the model is one of native upstreams.

There is no tokenizer here for such a model: the upstream counts, and what is reserved before it has is an estimate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.backends.native.failures import UNREACHABLE
from sidecar.backends.native.request import compaction_body, estimated_tokens, image_places, request_body
from sidecar.backends.native.response import Telling
from sidecar.exchange.asks import Facts
from sidecar.exchange.catalog import ServedNative
from sidecar.exchange.direct import check_compaction, directives_of, permitted
from sidecar.exchange.earlier import Continued, own_param
from sidecar.exchange.forwarded import forwarded_headers
from sidecar.exchange.keeping import check_stores, keeping_of
from sidecar.exchange.live import LiveAnswer
from sidecar.exchange.native_live import NativeLive
from sidecar.exchange.planned import Plan
from sidecar.exchange.report import Report
from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds, ulid
from sidecar.responses.items import input_list
from sidecar.responses.json_text import Json
from sidecar.responses.sealing import Sealer
from sidecar.surfaces.limits import check_count, check_size
from sidecar.surfaces.names import Named, with_defaults

COMPACTION_TOKENS = 32_768
"""What is reserved for a compaction, and the most that one costs."""

_DECIDED = frozenset({"status", "output", "usage", "incomplete_details", "completed_at"})
_WEB_SEARCH = frozenset({"web_search", "web_search_2025_08_26"})
_COMPACTION = frozenset({"compaction", "compaction_trigger"})
# See sidecar.responses.ids.
_OUR_REASONING = re.compile(r"rs_[0-9a-hjkmnp-tv-z]{26}_\d+")
_OURS = ("id", "object", "model", "store", "previous_response_id", "metadata", "user", "background", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePlan(Plan):
    """A request for a model of native upstreams.

    ``body`` is the upstream's request but for its model. ``routes`` are the places of the model's routes that support
    what it asks for, ``prompt_tokens`` an estimate. ``limit`` is the answer's limit, where it has one. ``telling`` is
    how the upstream's response is told. ``seconds`` is what the request may take, ``most_searches`` how often it may
    search the web. ``earlier_items`` counts those before the client's own, and ``names`` are those of its parameters.
    ``compacts`` is whether it asks for a compaction.
    """

    model: ServedNative
    body: bytes
    routes: tuple[int, ...]
    prompt_tokens: int
    limit: int | None
    telling: Telling
    most_searches: int
    seconds: float
    earlier_items: int
    places: Sequence[int]
    names: frozenset[str]
    compacts: bool

    @property
    def input_tokens(self) -> int:
        """An estimate."""
        return self.prompt_tokens

    @property
    def most_tokens(self) -> int | None:
        """The limit."""
        return self.limit

    @property
    def guided(self) -> bool:
        """Nobody knows."""
        return False

    @property
    def searches(self) -> int:
        """See :class:`Plan`."""
        return self.most_searches

    @property
    def route(self) -> str:
        """See :class:`Plan`."""
        return "gateway"

    def live(self, body: bytes | None, report: Report, at: float) -> LiveAnswer:
        """See :class:`Plan`; no images are loaded for it."""
        return NativeLive(self, report, at)


def native_plan(
    facts: Facts,
    values: Json,
    before: Sequence[Json] | None,
    named: Named,
    model: ServedNative,
    *,
    compacts: bool,
) -> NativePlan | Continued:
    """The plan for a request whose parameters are ``values``; ``before`` are the items that it continues, once known.

    Where it ``compacts``, its input ends with a trigger, of which the upstream's endpoint knows nothing.

    Raises:
        ApiError: the request is refused, or no route of the model supports what it asks for.
    """
    surface, event = facts.surface, facts.request
    reading, preset = surface.native or surface, facts.catalog.names(surface).preset
    team = event.caller.organization
    request = reading.check(values, lambda name: preset(name, team), before)
    values = with_defaults(values, preset(request.model, team))
    check_stores(surface, request)
    attribution = surface.attribution(event.headers, request)
    limits = model.settings.limits
    check_size(event.body_bytes, limits.max_request_bytes, "this model")
    if request.previous_response_id is not None and before is None:
        return Continued(request.previous_response_id)
    before = before or []
    items = [*before, *input_list(values["input"])]
    images = image_places(items)
    check_count("items", len(items), limits.max_items, "input")
    check_count("tools", len(request.tools), limits.max_tools, "tools")
    check_count("images", len(images), limits.max_images, "input")
    needs = _needs(values, items, images)
    directives = directives_of(facts)
    if compacts:
        check_compaction(directives)
    supporting = _routes(model, needs, len(before), compacts=compacts)
    routes = _awake(model, permitted(directives, named, model, supporting))
    searches = _searches(values, needs)
    ids = ResponseIds(ulid(int(event.unix_time * 1000), facts.entropy[:10]))
    created = int(event.unix_time)
    response = reading.new_response(request.model_copy(update={"model": named.told}), ids.response, created)
    ours = {name: response[name] for name in _OURS if name in response}
    places = [index for index, item in enumerate(items) if not _is_ours(item, surface.sealer)]
    conversation = [items[place] for place in places]
    limit = request.max_output_tokens
    if compacts:
        # Without the trigger.
        limit, body = COMPACTION_TOKENS, compaction_body(values, conversation[:-1])
    else:
        as_it_is = isinstance(values["input"], str) and not before
        body = request_body(values, None if as_it_is else conversation, most_tokens=limit)
    return NativePlan(
        model=model,
        upstream_headers=forwarded_headers(event.headers),
        stream=request.stream,
        ids=ids,
        response=response,
        output_limited=limit is not None,
        attribution=attribution,
        endpoint="responses.compact" if compacts else "responses",
        keeping=None if compacts else keeping_of(surface, request, event.caller, ids, values["input"], before),
        body=body,
        routes=routes,
        prompt_tokens=estimated_tokens(items, body),
        limit=limit,
        telling=Telling(response, ours, taken=None if surface.native else _DECIDED),
        most_searches=searches,
        seconds=surface.bounds.search_seconds if searches else surface.bounds.seconds,
        earlier_items=len(before),
        places=places,
        names=frozenset(values),
        compacts=compacts,
    )


def _needs(values: Json, items: Sequence[Json], images: Sequence[str]) -> dict[str, str]:
    """The features that a route needs, and for each the parameter that asks for it."""
    needs: dict[str, str] = {}
    for index, tool in enumerate(values.get("tools") or ()):
        needs.setdefault("web_search" if tool.get("type") in _WEB_SEARCH else "tools", f"tools[{index}]")
    if images:
        needs["images"] = images[0]
    form: Any = (values.get("text") or {}).get("format") or {}
    if isinstance(form, dict) and form.get("type") not in (None, "text"):
        needs["text.format"] = "text.format"
    for index, item in enumerate(items):
        if item.get("type") in _COMPACTION:
            needs.setdefault("compaction", f"input[{index}]")
        elif item.get("type") == "additional_tools":
            needs.setdefault("tools", f"input[{index}]")
    return needs


def _routes(model: ServedNative, needs: dict[str, str], earlier: int, *, compacts: bool) -> tuple[int, ...]:
    found = tuple(index for index, route in enumerate(model.routes) if needs.keys() <= route.features)
    if not found:
        missing = (name for name in needs if not any(name in route.features for route in model.routes))
        name = next(missing, next(iter(needs)))
        param = own_param(needs[name], earlier)
        if compacts:
            raise ApiError("invalid_request", f"This model has no route that is certified for {name}.", "model")
        message = f"'{param}': this model has no route that is certified for {name}."
        raise ApiError("unsupported_parameter", message, param)
    return found


def _awake(model: ServedNative, routes: Sequence[int]) -> tuple[int, ...]:
    """Those of the ``routes`` that do not rest; raises :class:`ApiError` where all do."""
    awake = tuple(index for index in routes if not model.routes[index].rests)
    if not awake:
        raise ApiError(UNREACHABLE.code, UNREACHABLE.message)
    return awake


def _searches(values: Json, needs: dict[str, str]) -> int:
    """How often it may search the web; that has to be said, since each search costs."""
    if "web_search" not in needs:
        return 0
    most = values.get("max_tool_calls")
    if most is None:
        message = "max_tool_calls is required with web_search: it bounds the searches that the request can run."
        raise ApiError("invalid_request", message, "max_tool_calls")
    return int(most)


def _is_ours(item: Json, sealer: Sealer | None) -> bool:
    """Whether it is reasoning of a model of Triton's, which no upstream can read."""
    if item.get("type") != "reasoning":
        return False
    sealed = item.get("encrypted_content")
    if isinstance(sealed, str):
        return sealer is not None and sealer.unseal(sealed) is not None
    return _OUR_REASONING.fullmatch(str(item.get("id"))) is not None
