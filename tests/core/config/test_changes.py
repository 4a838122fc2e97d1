"""What of a changed configuration takes effect while the sidecar runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.config.changes import FIXED, FIXED_OF_STORE, Change, change, with_store_url
from sidecar.config.load import load
from sidecar.config.models import Config
from sidecar.config.store import StoreConfig
from tests.core.config.test_config import GOOD, MODEL, write


def changed(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]) -> Change:
    running, written = (with_store_url(load(write(tmp_path, {**GOOD, **settings}))) for settings in (before, after))
    return change(running, written)


def test_all_that_is_not_fixed_takes_effect(tmp_path: Path) -> None:
    after = {
        "models": [{**MODEL, "name": "other"}],
        "admission": {"defaults": {"requests_per_minute": 5}},
        "store": {"retention_days": 9},
        "drain": 3,
    }
    made = changed(tmp_path, {}, after)
    assert (made.changed, made.waiting) == (["models", "store", "admission", "drain"], [])
    assert made.config == with_store_url(load(write(tmp_path, {**GOOD, **after})))


@pytest.mark.parametrize(
    ("after", "waiting"),
    [
        (
            {"node": "b", "workers": 7, "sockets": "elsewhere", "currency": "EUR"},
            ["node", "workers", "sockets", "currency"],
        ),
        ({"store": {"state": "elsewhere"}}, ["store.state", "store.url"]),
        ({"store": {"url": "sqlite:///elsewhere.db", "when_down": "spool"}}, ["store.url", "store.when_down"]),
        ({"accounts": False}, ["accounts"]),
    ],
)
def test_what_is_fixed_is_told_and_stays(tmp_path: Path, after: dict[str, Any], waiting: list[str]) -> None:
    made = changed(tmp_path, {}, {**after, "drain": 3})
    assert (made.changed, made.waiting) == (["drain"], waiting)
    running = with_store_url(load(write(tmp_path, GOOD)))
    assert made.config == running.model_copy(update={"drain": 3})


def test_accounts_that_are_to_be_kept_are_kept_from_the_next_start(tmp_path: Path) -> None:
    made = changed(tmp_path, {"accounts": False}, {"store": {"url": "sqlite:///elsewhere.db"}})
    assert (made.changed, made.waiting, made.config.store) == ([], ["accounts"], StoreConfig(state=tmp_path / "state"))


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        ("postgresql://a:one@h/d", "postgresql://a:two@h/d", False),
        ("postgresql://a@h/d", "postgresql://a:two@h/d", False),
        ("postgresql://a:one@h/d", "postgresql://a:one@other/d", True),
        ("postgresql://a:one@h/d", "postgresql://b:one@h/d", True),
        ("postgresql://a:one@h/d?sslmode=require", "postgresql://a:two@h/d", True),
    ],
)
def test_another_password_is_the_same_store(tmp_path: Path, before: str, after: str, waits: bool) -> None:
    made = []
    for url in (before, after):
        (tmp_path / "url").write_text(url)
        made.append(with_store_url(load(write(tmp_path, {**GOOD, "store": {"url_file": "url"}}))))
    result = change(*made)
    assert (result.waiting == ["store.url"]) is waits
    assert result.config.store.url == (before if waits else after)


def test_fixed_keys_are_keys() -> None:
    assert set(FIXED) <= Config.model_fields.keys()
    assert set(FIXED_OF_STORE) <= StoreConfig.model_fields.keys()
