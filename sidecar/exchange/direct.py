"""The ask for the directives of who sends a request, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Self

from sidecar.admission.directives import NONE, Directives
from sidecar.config.upstreams import UpstreamConfig
from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.catalog import ServedNative
from sidecar.exchange.planned import Plan
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.responses.wording import shown
from sidecar.surfaces.names import Named


@dataclass(frozen=True, slots=True)
class Direct(Ask[Directives]):
    """Find out what is set for ``caller``. It comes before all else: a plan keeps to it."""

    caller: Caller

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """On a surface whose teams have directives."""
        return cls(facts.request.caller) if facts.surface.directed else None


def directives_of(facts: Facts) -> Directives:
    """Those that hold for a request; none where nobody was asked for them."""
    return facts.get(Direct) or NONE


def lowered(values: Json, preset: int | None, default: int | None, most: int) -> Json:
    """``values`` in which no ``max_output_tokens`` is above ``most``.

    ``preset`` stands for what is left out, and ``default`` where there is none either. What is not a number is left for
    whoever reads it to refuse.
    """
    sent = values.get("max_output_tokens")
    asked: object = next((limit for limit in (sent, preset, default) if limit is not None), inf)
    above = isinstance(asked, int | float) and not isinstance(asked, bool) and asked > most
    return {**values, "max_output_tokens": most} if above else values


def check_vendor(directives: Directives, named: Named) -> None:
    """Go on only where the vendor of a model of the node's own is not excluded.

    Raises:
        ApiError: ``policy_denied``.
    """
    if directives.excludes(named.owner):
        message = f"{shown(named.told)} is of a vendor that a directive excludes, and has no other route."
        raise ApiError("policy_denied", message, "model")


def permitted(directives: Directives, named: Named, model: ServedNative, routes: Sequence[int]) -> tuple[int, ...]:
    """Those of the ``routes`` of a model, by their places, that directives leave it.

    Raises:
        ApiError: ``policy_denied``: there is none.
    """
    left = tuple(index for index in routes if _permits(directives, model.routes[index].upstream))
    if not left:
        message = f"Directives exclude all routes of {shown(named.told)} that this request could take."
        raise ApiError("policy_denied", message, "model")
    return left


def _permits(directives: Directives, upstream: UpstreamConfig) -> bool:
    return not directives.excludes(upstream.owner) and (upstream.no_training or not directives.no_training)


def check_compaction(directives: Directives) -> None:
    """Go on only where a conversation may be compacted by an upstream, which no data rule can be sent to with it.

    Raises:
        ApiError: ``policy_denied``.
    """
    if directives.retains_nothing or directives.no_training:
        rule = "zero data retention" if directives.retains_nothing else "that nobody trains on requests"
        raise ApiError("policy_denied", f"A directive demands {rule}, which compaction cannot keep to.", "model")


def check_input(directives: Directives, plan: Plan) -> None:
    """Go on only where the prompt is not longer than is allowed: that is the whole conversation.

    Raises:
        ApiError: ``policy_denied``.
    """
    most = directives.max_input_tokens
    if most is not None and plan.input_tokens > most:
        message = f"The request has {plan.input_tokens} input tokens; a directive allows at most {most}."
        raise ApiError("policy_denied", message, "input")
