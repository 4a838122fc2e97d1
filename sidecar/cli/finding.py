"""What a check finds."""

from __future__ import annotations

from typing import NamedTuple

GOOD, BAD, REFUSED = range(3)
"""The command's exit statuses: ``REFUSED`` is that of a configuration with which nothing can be served."""


class Finding(NamedTuple):
    """One check's result in words; a ``note`` is good, and worth knowing."""

    status: int
    text: str
    note: bool = False
