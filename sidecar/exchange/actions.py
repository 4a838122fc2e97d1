"""What an exchange asks of its caller, in order.

A :class:`Reply` is a whole answer in place of everything else; the exchange is over with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidecar.images.image import ImageRef
from sidecar.responses.reply import Reply


@dataclass(frozen=True, slots=True)
class FetchImages:
    """Load these images and hand them over as ``ImagesFetched``."""

    refs: Sequence[ImageRef]


@dataclass(frozen=True, slots=True)
class CallUpstream:
    """Call Triton's ``ModelStreamInfer`` with one serialized ``ModelInferRequest``; ``headers`` go along."""

    message: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SendHead:
    """Send the response head: status 200 and these headers."""

    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SendBody:
    """Send these bytes of the response body. Bytes of an event stream are whole events."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Finish:
    """End the response body; the exchange is over."""


Action = Reply | FetchImages | CallUpstream | SendHead | SendBody | Finish
