"""The ask for a reservation: nothing is generated or fetched that has not been accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from sidecar.admission.directives import Directives, limits_of_user
from sidecar.admission.entries import Admitted, ReservationRequest
from sidecar.admission.image_bytes import ImageBytes
from sidecar.admission.slots import Slot
from sidecar.config.models import ImageLimits
from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.direct import check_input, directives_of
from sidecar.exchange.load import plan_of
from sidecar.exchange.planned import Plan
from sidecar.images.data_url import is_data_url
from sidecar.responses.caller import Caller

ASSUMED_OUTPUT_TOKENS = 512
"""What is reserved for an answer whose request names no limit; it may become longer."""

MOST_SEARCHES = 1_000
"""Web searches that are held for at most, and charged."""

MOST_OF_AN_ID = 256
"""Characters of a request's id that are kept: clients within the operator's own network may send any."""

NOBODY = "local"
"""The organization of whom no authentication has named."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """A request that was admitted: ``slot`` is where its answer is counted, ``images`` counts what is fetched for it.

    ``headers`` tell the client how it stands with its limits.
    """

    request: ReservationRequest
    slot: Slot
    images: ImageBytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, request: ReservationRequest, slot: Slot, admitted: Admitted) -> Self:
        """The answer to the ask, by what came of its ``request``."""
        images = ImageBytes(admitted.image_bytes, limit=admitted.image_limit, model=request.shown_model)
        return cls(request, slot, images, admitted.standing.headers())


@dataclass(frozen=True, slots=True)
class Reserve(Ask[Reserved]):
    """Reserve what a request may use at most, as far as that is known."""

    plan: Plan
    caller: Caller
    request_id: str
    node: str
    directives: Directives

    @classmethod
    def needed(cls, facts: Facts) -> Self:
        """Always; raises :class:`ApiError` ``policy_denied`` where a directive does not allow it."""
        ask = cls.of(facts)
        check_input(ask.directives, ask.plan)
        return ask

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """The ask for a request that has been planned."""
        headers = facts.request.headers
        return cls(
            plan_of(facts),
            facts.request.caller,
            headers.get("x-request-id", ""),
            facts.catalog.node,
            directives_of(facts),
        )

    def request(self, worker: str, images: ImageLimits) -> ReservationRequest:
        """What is asked for; ``worker`` is the life of this process, ``images`` are the limits of its fetches."""
        plan, most = self.plan, self.plan.most_tokens
        assumed = ASSUMED_OUTPUT_TOKENS if most is None else min(most, ASSUMED_OUTPUT_TOKENS)
        fetched = len({image.url for image in plan.images if not is_data_url(image.url)})
        end_user = plan.attribution.end_user or self.caller.user or None
        allowed = (self.directives.user_requests_per_minute, self.directives.user_tokens_per_minute)
        organization = self.caller.organization or NOBODY
        return ReservationRequest(
            id=plan.ids.ulid,
            request_id=self.request_id[:MOST_OF_AN_ID],
            organization_id=organization,
            credential_id=self.caller.key or None,
            model=plan.model.name,
            node=self.node,
            worker=worker,
            input_tokens=plan.input_tokens,
            output_tokens=most if plan.output_limited and most is not None else assumed,
            image_bytes=min(fetched * images.max_bytes, images.max_total_bytes),
            searches=min(plan.searches, MOST_SEARCHES),
            stream=plan.stream,
            end_user=end_user,
            tags=plan.attribution.tag_list,
            project=self.caller.project or None,
            environment=self.caller.environment or None,
            endpoint=plan.endpoint,
            told_model=plan.response["model"],
            session=plan.attribution.session,
            client_request_id=plan.attribution.client_request_id,
            user_limits=tuple(limits_of_user(replace(self.caller, organization=organization), end_user, *allowed)),
        )
