"""Shares of what there is too little of: whoever has the most gives way, and only while others wait."""

from __future__ import annotations

from sidecar.fairness.queue import FairQueue, QueueFullError
from sidecar.fairness.turns import Turns

__all__ = ["FairQueue", "QueueFullError", "Turns"]
