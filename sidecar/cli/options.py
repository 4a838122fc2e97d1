"""Options that commands share, and what their texts mean."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from sidecar.config.listeners import ADDRESS, checked_port

ConfigFile = Annotated[Path, typer.Option("--config", help="The configuration file (YAML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="What it allows, once for each scope; infer:run and infer:read by default."),
]

_DURATION = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_COUNTED = 10**12
"""The highest limit: buckets are kept in millionths, and a store's numbers have 63 bits."""

_COUNT = re.compile(r"\d{1,13}", re.ASCII)
_AMOUNT = re.compile(r"-?\d{1,9}(\.\d{1,9})?", re.ASCII)


def address_of(text: str) -> str:
    """``text``, which is a ``host:port``."""
    if not re.fullmatch(ADDRESS, text):
        raise typer.BadParameter(f"{text} is no host and port such as 127.0.0.1:8001")
    try:
        return checked_port(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}") from None


def seconds_of(duration: str) -> float:
    """The seconds of ``90d``, ``12h``, ``30m`` or ``45s``."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise typer.BadParameter(f"{duration} is no duration such as 90d, 12h, 30m or 45s")
    return float(int(found[1]) * _SECONDS[found[2]])


def nano_of(amount: str) -> int:
    """The nano-units of an amount of money such as ``25`` or ``-0.000000001``."""
    if not _AMOUNT.fullmatch(amount):
        raise typer.BadParameter(f"{amount} is no amount such as 25 or -0.5, of at most nine decimals")
    return int(Decimal(amount).scaleb(9))


def limit_of(text: str | None) -> int | None:
    """The number in ``text``; ``None`` for ``none``."""
    if text == "none":
        return None
    if text is None or not _COUNT.fullmatch(text) or int(text) > MOST_COUNTED:
        raise typer.BadParameter(f"{text} is neither a whole number from 0 to {MOST_COUNTED} nor none")
    return int(text)
