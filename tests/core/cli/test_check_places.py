"""What check says of a node's directories and addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.check_places import check_places
from sidecar.cli.finding import BAD
from sidecar.config.models import Config


def places(directory: Path, *, store: dict[str, Any] | None = None, **keys: Any) -> list[tuple[int, str]]:
    model = {"name": "m", "triton_model": "m", "tokenizer": "/t", "context_length": 100}
    triton = {"address": "127.0.0.1:8001"}
    needed = {"node": "n", "triton": triton, "sockets": directory / "a" / "b", "models": [model]}
    config = Config.model_validate({**needed, "store": {"state": directory / "state", **(store or {})}, **keys})
    return [(status, text) for status, text, _ in check_places(config)]


def test_what_can_be_had_is_not_told_of_and_nothing_is_left(tmp_path: Path) -> None:
    assert places(tmp_path, admin={"address": "127.0.0.1:9101"}, usage_feed={"address": "localhost:9100"}) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"sockets": "/proc/none/sockets"}, "sockets: /proc/none/sockets cannot be had (/proc: "),
        ({"store": {"state": "/proc/none"}}, "store.state: /proc/none cannot be had (/proc: "),
        ({"store": {"url": "sqlite:////proc/none/x.db"}}, "store.url: /proc/none cannot be had (/proc: "),
        ({"admin": {"address": "192.0.2.1:9101"}}, "admin.address: nothing can listen at 192.0.2.1:9101 ("),
        ({"usage_feed": {"address": "192.0.2.1:1"}}, "usage_feed.address: nothing can listen at 192.0.2.1:1 ("),
    ],
)
def test_what_cannot_be_had_is_told(tmp_path: Path, keys: dict[str, Any], text: str) -> None:
    ((status, words),) = places(tmp_path, **keys)
    assert status == BAD
    assert words.startswith(text)


def test_a_file_in_the_place_of_a_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ((status, words),) = places(tmp_path, sockets=tmp_path / "file")
    assert (status, words) == (
        BAD,
        f"sockets: {tmp_path / 'file'} cannot be had ({tmp_path / 'file'}: Not a directory)",
    )
