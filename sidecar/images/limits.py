"""What the node takes of images, and where from."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.responses.errors import ApiError


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """Limits for one image and its fetch.

    ``max_bytes`` are those of the encoded file, ``max_pixels`` width times height. ``timeout`` is seconds for one
    fetch, redirects included; ``concurrency`` how many fetches one request runs at a time. ``ports`` are those that may
    be connected to, and plain ``http`` is refused unless ``allow_http``.
    """

    allow_http: bool = False
    ports: tuple[int, ...] = (443, 80)
    max_bytes: int = 10 * 1024 * 1024
    max_pixels: int = 40_000_000
    timeout: float = 10.0
    concurrency: int = 4


def too_large(max_bytes: int) -> ApiError:
    """The error for an image of more than ``max_bytes``."""
    return ApiError("payload_too_large", f"An image has more than {max_bytes} bytes; no larger one is accepted.")
