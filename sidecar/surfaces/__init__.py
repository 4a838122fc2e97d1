"""One folder per surface, and one line here: what it accepts, its defaults and the shapes of its answers and errors."""

from __future__ import annotations

from sidecar.surfaces.bureau import BUREAU
from sidecar.surfaces.node import NODE
from sidecar.surfaces.surface import Surface

# By the name under which an Envoy route asks for it.
SURFACES: dict[str, Surface] = {"node": NODE, "bureau": BUREAU}

__all__ = ["SURFACES", "Surface"]
