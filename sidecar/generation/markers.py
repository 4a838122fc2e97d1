"""Strings to look for in text that arrives in pieces: the markers of a format, and stop strings."""

from __future__ import annotations

import re

_PART = 50


class Markers:
    """Finds the first of some strings, or the beginning of one at the end of what has come.

    A string that holds another one, anywhere but at its end, is never the first to be complete, and not looked for.
    ``characters`` are looked for beside the strings; they stand for themselves in a character class.
    """

    def __init__(self, *markers: str, characters: str = "") -> None:
        first = [marker for marker in dict.fromkeys(markers) if not any(other in marker[:-1] for other in markers)]
        # The longer of two that end alike begins first; of two that begin alike there is only the shorter left.
        whole = [re.escape(marker) for marker in first] + ([f"[{characters}]"] if characters else [])
        begun = "|".join(map(_begun, first)) or "(?!)"
        initials = "".join({re.escape(marker[0]) for marker in first}) + characters
        # The first characters alone are looked for at the speed of the regex engine's character sets.
        found = rf"(?=[{initials}])(?:(?P<whole>{'|'.join(whole)})|(?:{begun})\Z)" if whole else r"(?P<whole>(?!))"
        self.search = re.compile(found, re.DOTALL).search
        """Search a piece: group ``whole`` is the string found, or None for the beginning of one at the end."""
        self.begun = re.compile(rf"(?:{begun})\Z", re.DOTALL).search
        """Search the beginning of a string at the end of a text."""


def _begun(marker: str) -> str:
    """A pattern for all beginnings of ``marker``; part for part, as the depth of a pattern is limited."""
    patterns = []
    for start in range(0, len(marker), _PART):
        pattern = ""
        for character in reversed(marker[start + 1 : start + _PART]):
            pattern = f"(?:{re.escape(character)}{pattern})?"
        patterns.append(re.escape(marker[: start + 1]) + pattern)
    return "|".join(patterns)
