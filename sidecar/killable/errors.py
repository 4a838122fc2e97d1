"""How a call can fail apart from what the function itself raises."""

from __future__ import annotations


class OverrunError(Exception):
    """The call took more than its time or its memory; its process is gone."""


class CrashedError(Exception):
    """The process ended by itself in the middle of the call."""
