"""The credits of prepaid organizations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Account:
    """In nano-units: the ``balance`` that is left, and what of it is ``held`` for requests under way."""

    balance: int
    held: int
