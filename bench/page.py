"""The generated tables of a page: they stand between ``<!-- bench: name -->`` and ``<!-- bench: end -->``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from stack.paths import ROOT

PAGE = ROOT / "docs" / "performance.md"

_SECTION = re.compile(r"(<!-- bench: (?P<name>\w+) -->\n).*?(<!-- bench: end -->)", re.DOTALL)


def write(path: Path, sections: Mapping[str, str]) -> None:
    """Replace sections of a page; all else stays as it is.

    Raises:
        KeyError: the page has no such section.
    """
    path.write_text(rewritten(path.read_text(), sections))


def rewritten(page: str, sections: Mapping[str, str]) -> str:
    """A page's text with other contents of the sections named.

    Raises:
        KeyError: the page has no such section.
    """
    missing = sections.keys() - {section["name"] for section in _SECTION.finditer(page)}
    if missing:
        raise KeyError(", ".join(sorted(missing)))

    def replace(section: re.Match[str]) -> str:
        content = sections.get(section["name"])
        return section[0] if content is None else f"{section[1]}{content.strip()}\n{section[3]}"

    return _SECTION.sub(replace, page)
