"""The site is built without a fault and loads nothing from elsewhere; what pages mark to be run runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stack import site
from stack.local import LocalStack
from stack.paths import ROOT, TOKENIZER
from stack.process import StackError
from stack.triton import Triton

_MARKED = re.compile(r"^<!-- run -->\n```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if _MARKED.search(page.read_text(encoding="utf-8"))]
_INTERPRETERS = {"console": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a reader follows a page; its path leaves room for a Unix socket's."""
    with tempfile.TemporaryDirectory(prefix="docs-") as directory:
        yield Path(directory)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_marks_as_run_runs(page: Path, place: Path, stack: LocalStack, triton: Triton) -> None:
    meant = {
        "http://127.0.0.1:8080/v1/infer": stack.url,
        "b3os_sk_…": stack.api_key,
        "127.0.0.1:8001": f"127.0.0.1:{triton.grpc_port}",
        "/models": str(TOKENIZER.parent),
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, text in _MARKED.findall(page.read_text(encoding="utf-8")):
        for shown, value in meant.items():
            text = text.replace(shown, value)  # noqa: PLW2901
        done = subprocess.run(
            [*_INTERPRETERS[language], text],
            cwd=place,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), f"{text} says nothing"
        assert not re.search(r'"error": ?{', done.stdout), done.stdout


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
