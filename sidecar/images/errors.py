"""The errors that more than one step of reading an image can meet."""

from __future__ import annotations

from sidecar.responses.errors import ApiError


def too_large(max_bytes: int) -> ApiError:
    """The error for an image of more than ``max_bytes``."""
    return ApiError("payload_too_large", f"An image has more than {max_bytes} bytes; no larger one is accepted.")
