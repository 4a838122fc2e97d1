"""The documents are a site without a fault, which loads nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stack import site
from stack.paths import ROOT
from stack.process import StackError


class _Loaded(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href" if tag == "link" else "src")
        if tag != "a" and address is not None:
            self.addresses.append(address)


def test_the_site_is_whole_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    index = site.build(tmp_path / "site")
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert {page.stem for page in index.parent.glob("*.html")} == pages | {"404"}
    for page in index.parent.glob("*.html"):
        loaded = _Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses
        assert not [address for address in loaded.addresses if "//" in address], page
    for sheet in index.parent.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.parametrize("link", ["nowhere.md", "index.md#nowhere"])
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, link: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# A page\n\n[a link]({link})\n")
    with pytest.raises(StackError, match=r"index\.md:3"):
        site.build(tmp_path / "site", docs)
