"""The OpenAPI 3.1 document of a surface: requests from the models that read them, answers and errors beside them."""

from __future__ import annotations

from sidecar.surfaces.openapi.document import document

__all__ = ["document"]
