"""The input of a custom tool, read out of the arguments in which a model writes it: ``{"input": "…"}``, as it grows.

A custom tool takes one text. A model is shown a function with this one argument; what the argument's string says is the
input. Arguments of another form are no stream: they are told at the end, as well as they can be.
"""

from __future__ import annotations

import json
import re

MEMBER = "input"

_BEGIN = re.compile(rf'\s*\{{\s*"{MEMBER}"\s*:\s*"')
_BEGIN_TEXT = f'{{"{MEMBER}":"'
# Whole characters and escapes; the first half of a surrogate pair is no whole character.
_HIGH = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_CHARACTERS = re.compile(
    rf'(?:[^"\\]|\\[^u]|{_HIGH}\\u[0-9a-fA-F]{{4}}|(?!{_HIGH})\\u[0-9a-fA-F]{{4}}|{_HIGH}(?=[^\\]|\\[^u]))*', re.DOTALL
)


class CustomInput:
    """Reads one call's arguments, JSON text split anywhere."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False

    def feed(self, arguments: str) -> str:
        """What ``arguments`` add to the input."""
        if self._over:
            return ""
        held = self._held = self._held + arguments
        if not self._inside:
            begin = _BEGIN.match(held)
            if begin is None:
                return ""
            self._inside, held = True, held[begin.end() :]
        characters = _CHARACTERS.match(held)
        assert characters is not None, "nothing is a run of characters too"
        text = characters[0]
        self._held = held[len(text) :]
        self._over = self._held.startswith('"')
        return _decoded(text)

    def end(self) -> str:
        """The input of whole arguments that had another form; empty where it has been told."""
        if self._inside or _BEGIN_TEXT.startswith("".join(self._held.split())):
            return ""
        try:
            values = list(json.loads(self._held).values())
        except (ValueError, AttributeError):
            return self._held
        if not values:
            return ""
        return values[0] if len(values) == 1 and isinstance(values[0], str) else self._held


def arguments_of(text: str) -> str:
    """The arguments that say ``text``."""
    return json.dumps({MEMBER: text}, ensure_ascii=False)


def _decoded(escaped: str) -> str:
    """A JSON string's content; half a surrogate pair becomes U+FFFD, which any encoding can hold."""
    if "\\" not in escaped:
        return escaped
    text: str = json.loads(f'"{escaped}"', strict=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
