"""The commands that the documents show for a store are run as they stand, on one that was just made."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from sidecar.cli import app
from stack.paths import ROOT
from tests.core.repository.test_docs import commands
from tests.store.commands import runner, write_config

# These ask a Triton or an endpoint, and are run on real ones.
ELSEWHERE = {"init", "check", "serve", "verify", "health"}
PAGES = ["bureau", "billing", "directives", "identity", "operations", "store", "stored"]
_ID = re.compile(r"\b(key|ses)_[0-9a-z]+")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with a store, and a key for what is stored."""
    path = write_config(tmp_path)
    key = tmp_path / "master.key"
    key.write_bytes(b64encode(bytes(32)))
    key.chmod(0o600)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "stored": {"master_key": str(key)}}))
    runner(path)("store", "migrate")
    return path


def shown(page: str) -> Iterator[list[str]]:
    """The arguments of each command of the page that is for a store."""
    for _, *words in commands((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
        if words[0] not in ELSEWHERE:
            yield words


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_can_be_done(page: str, config: Path) -> None:
    if not any(words[:2] == ["orgs", "create"] for words in shown(page)):
        runner(config)("orgs", "create", "acme")
        runner(config)("keys", "create", "acme", "--project", "support", "--environment", "production")
    made: dict[str, str] = {}
    names = {"FILE": str(config), "sidecar.yaml": str(config), "FILE.db": str(config.with_name("copy.db"))}
    run = 0
    for words in shown(page):
        typed = [names.get(word, word).replace("/backups", str(config.parent)) for word in words]
        result = CliRunner().invoke(app, [made[word[:3]] if word in {"key_…", "ses_…"} else word for word in typed])
        assert result.exit_code == 0, f"{' '.join(words)}: {result.output}"
        made.update((found[1], found[0]) for found in _ID.finditer(result.output))
        run += 1
    assert run
