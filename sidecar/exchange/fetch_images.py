"""The ask for a request's images."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

from sidecar.exchange.asks import Ask, Facts
from sidecar.exchange.load import plan_of
from sidecar.exchange.planned import Plan
from sidecar.exchange.reserve import Reserve, Reserved
from sidecar.images.image import Image, ImageRef


@dataclass(frozen=True, slots=True)
class FetchImages(Ask[bytes]):
    """Load the images that a request names. The answer is the upstream's request with the images in it.

    Writing megabytes of images into a message takes time too, so it is done where they are loaded.
    """

    plan: Plan
    client: Hashable
    reserved: Reserved | None

    @classmethod
    def needed(cls, facts: Facts) -> Self | None:
        """Where the request has images."""
        plan = plan_of(facts)
        return cls(plan, facts.request.client, facts.get(Reserve)) if plan.images else None

    @property
    def refs(self) -> Sequence[ImageRef]:
        """The images to load."""
        return self.plan.images

    def body(self, images: Sequence[Image]) -> bytes:
        """The upstream's request with the loaded ``images``, which are in the order of ``refs``."""
        return self.plan.body_with(images)
