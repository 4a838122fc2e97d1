"""What a server says, made fit for one line of a terminal."""

from __future__ import annotations

import json
from typing import Any

LONGEST = 200
"""Characters that are shown of a server's words."""


def printable(text: str) -> str:
    """``text`` on one line, shortened, without characters that a terminal would act on."""
    line = " ".join(text[: LONGEST * 4].split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def server_message(body: bytes) -> str | None:
    """What an error body says: its error's message, or else how the body begins; ``None`` where it says nothing."""
    error: Any = error_of(body)
    if not isinstance(error, dict):
        return printable(body[: LONGEST * 4].decode(errors="replace")) or None
    message = error.get("message")
    return printable(message) if isinstance(message, str) and message else None


def error_of(body: bytes) -> object:
    """The member ``error`` of an error body; ``None`` where there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document.get("error") if isinstance(document, dict) else None
