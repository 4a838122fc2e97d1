"""What the plans of all requests have in common, whoever generates their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.exchange.catalog import Served
from sidecar.exchange.earlier import Keeping
from sidecar.guidance.guides import Guide
from sidecar.images.image import Image, ImageRef
from sidecar.responses.ids import ResponseIds
from sidecar.responses.json_text import Json
from sidecar.surfaces.attribution import Attribution

if TYPE_CHECKING:
    from sidecar.exchange.live import LiveAnswer
    from sidecar.exchange.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(ABC):
    """A request accepted: the call to make, and the response to fill.

    ``upstream_headers`` are those of the client's that go along. ``output_limited`` is whether the answer has a limit
    that was named, by the client or by its surface. ``attribution`` is whom it is counted for, ``keeping`` where the
    response will be stored, if it is to be. ``endpoint`` is what receipts call the operation. A plan may come from
    another process: it holds nothing that cannot be sent from there.
    """

    model: Served
    upstream_headers: Mapping[str, str]
    stream: bool
    ids: ResponseIds
    response: Json
    output_limited: bool
    attribution: Attribution
    keeping: Keeping | None = None
    endpoint: str = "responses"

    @property
    @abstractmethod
    def input_tokens(self) -> int:
        """The tokens of the prompt, or what they are taken for until the upstream has told them."""

    @property
    @abstractmethod
    def most_tokens(self) -> int | None:
        """The tokens that the answer may have at most; ``None`` where that is the upstream's business."""

    @property
    @abstractmethod
    def guided(self) -> bool:
        """Whether the runtime is held to a form, so that each token of the answer is one that its guide allows."""

    @property
    def unchecked_guides(self) -> Sequence[Guide]:
        """Those of its guides that nobody has looked at yet."""
        return ()

    @property
    def images(self) -> Sequence[ImageRef]:
        """The images that are to be loaded before the upstream is called."""
        return ()

    def body_with(self, images: Sequence[Image]) -> bytes:
        """The upstream's request with the loaded ``images``."""
        raise AssertionError("it has no images to load")

    @property
    def searches(self) -> int:
        """How often the model may search the web, which takes longer."""
        return 0

    @property
    def route(self) -> str:
        """``local`` where a model of our own answers, ``gateway`` where a native upstream does."""
        return "local"

    @property
    def remedy(self) -> str:
        """What the operator can do about broken characters in answers; empty where nothing."""
        return ""

    @abstractmethod
    def live(self, body: bytes | None, report: Report, at: float) -> LiveAnswer:
        """The answer that begins with the call; ``body`` is the upstream's request where images were loaded.

        ``at`` is the time of the call, on the clock of the events.
        """
