"""Images as text, in the forms that Triton's contracts take."""

from __future__ import annotations

import base64

from sidecar.backends.triton.contracts.contract import UNBOUNDED
from sidecar.backends.triton.protocol import service_pb2
from sidecar.images.image import Image


def max_images(metadata: service_pb2.ModelMetadataResponse, name: str) -> int:
    """How many images the input ``name`` takes: the length of its last dimension where that is fixed, 0 without it."""
    shape = next((tensor.shape for tensor in metadata.inputs if tensor.name == name), None)
    if shape is None:
        return 0
    return int(shape[-1]) if shape and shape[-1] > 0 else UNBOUNDED


def plain_base64(image: Image) -> str:
    """Base64 alone."""
    return base64.b64encode(image.data).decode("ascii")


def data_url(image: Image) -> str:
    """A ``data:`` URL."""
    return f"data:{image.mime};base64,{plain_base64(image)}"


def jpeg_data_url(image: Image) -> str:
    """A ``data:`` URL for a reader that knows one prefix only, and looks at the bytes for the format."""
    return f"data:image/jpeg;base64,{plain_base64(image)}"
