"""A changed file is noticed once it is whole, whatever way it has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.server.watched import Watched


def write(file: Path) -> None:
    file.write_text("other")


def touch(file: Path) -> None:
    os.utime(file, ns=(1, 1))


def swap(file: Path) -> None:
    directory = file.with_name("..new")
    directory.mkdir()
    (directory / "file").write_text("other")
    (directory / "link").symlink_to(directory / "file")
    (directory / "link").rename(file)


def rename(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("some")
    other.rename(file)
    touch(file)


@pytest.mark.parametrize("change", [write, touch, swap, rename, Path.unlink])
def test_a_change_is_told_once_when_it_has_lasted(tmp_path: Path, change: object) -> None:
    assert callable(change)
    file, other = tmp_path / "file", tmp_path / "never"
    file.write_text("some")
    watched = Watched((file, other))
    assert [watched.changed(), watched.changed()] == [False, False]
    change(file)
    assert [watched.changed() for _ in range(3)] == [False, True, False]


def test_what_goes_on_changing_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    watched = Watched((file,))
    for number in range(3):
        file.write_text("x" * (number + 1))
        assert not watched.changed()
    assert watched.changed()


def test_what_is_known_is_not_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("some")
    watched = Watched((file,))
    before = watched.contents
    file.write_text("other")
    watched.note()
    assert watched.contents != before
    assert [watched.changed(), watched.changed()] == [False, False]
