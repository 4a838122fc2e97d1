"""Names from a request, made fit to appear in an error message."""

from __future__ import annotations

MAX_SHOWN = 64


def shown(name: str) -> str:
    """A short printable form of a name the client chose: a key, a type, an id. Payload text is never passed here."""
    printable = "".join(character if character.isprintable() else "?" for character in name[: MAX_SHOWN + 1])
    return printable if len(name) <= MAX_SHOWN else printable[:MAX_SHOWN] + "…"
