"""The key that ``./dev up`` makes: kept while it counts, made anew when it does not, and nobody else's to read."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sidecar.identity.records import revoke
from sidecar.store import connect
from stack.first_key import command, first_key
from stack.process import StackError

MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sidecar.yaml"
    content = {"node": "n", "sockets": "/tmp", "triton": {"address": "127.0.0.1:1"}, "models": [MODEL]}
    path.write_text(yaml.safe_dump({**content, "store": {"state": "state"}}))
    return path


def test_it_is_kept_while_it_counts(config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "key.json"
    key = first_key(config, kept)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert first_key(config, kept) == key
    (listed,) = command(config, "keys", "list")
    assert listed["scopes"] == ["admin", "infer:read", "infer:run", "usage:read"]


@pytest.mark.parametrize("content", ["", "[]", '{"id": "key_x", "secret": "b3os_sk_x"}'])
def test_a_file_that_holds_no_key_is_replaced(config: Path, tmp_path: Path, content: str) -> None:
    kept = tmp_path / "key.json"
    kept.write_text(content)
    key = first_key(config, kept)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert first_key(config, kept) == key


def test_one_that_is_revoked_is_replaced(config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "key.json"
    key = first_key(config, kept)
    (listed,) = command(config, "keys", "list")
    with connect(f"sqlite:///{tmp_path}/state/ledger.db") as connection:
        revoke(connection, listed["id"])
    assert first_key(config, kept) != key
    assert len(command(config, "orgs", "list")["organizations"]) == 1


def test_a_command_that_fails_says_why(config: Path, tmp_path: Path) -> None:
    first_key(config, tmp_path / "key.json")
    with pytest.raises(StackError, match="keys create nobody failed: There is no organization nobody"):
        command(config, "keys", "create", "nobody")
