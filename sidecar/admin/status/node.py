"""What the status page is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecar.admission.limits import Limits
from sidecar.exchange.catalog import Catalog
from sidecar.surfaces.surface import Surface


@dataclass(frozen=True, slots=True)
class Node:
    """The node of this worker.

    ``catalog`` tells what it serves now, by ``surfaces``, and ``accounts`` whether it knows organizations. ``metrics``
    and ``recent`` are the directories in which its workers keep their metrics and what they have done of late.
    ``defaults`` are limits that organizations have where nothing else is said, ``currency`` is that of their accounts.
    ``playground`` is the base URL of Envoy's listener, where the page may send requests there.
    """

    catalog: Callable[[], Catalog]
    surfaces: Mapping[str, Surface]
    accounts: bool
    metrics: Path
    recent: Path
    defaults: Limits
    currency: str
    playground: str | None
