"""Of the regions in ``/dev/shm``, only those that are this user's, this project's and nobody's any more are removed."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from stack import shared_memory


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shared_memory, "_DIRECTORY", tmp_path)
    return tmp_path


def region(directory: Path, prefix: str) -> Path:
    path = directory / f"{prefix}region"
    path.write_bytes(bytes(mmap.PAGESIZE))
    return path


def test_unused_regions_go_and_mapped_ones_stay(directory: Path) -> None:
    left_behind = region(directory, shared_memory.new_prefix())
    in_use = region(directory, shared_memory.new_prefix())
    foreign = region(directory, "another-project-")
    with in_use.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        shared_memory.remove_unused()
        assert sorted(directory.iterdir()) == sorted([in_use, foreign])
    assert not left_behind.exists()


def test_one_servers_regions_go_by_their_prefix(directory: Path) -> None:
    prefix, other = shared_memory.new_prefix(), region(directory, shared_memory.new_prefix())
    region(directory, prefix)
    shared_memory.remove(prefix)
    assert list(directory.iterdir()) == [other]


def test_what_another_user_left_is_not_ours(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = shared_memory.new_prefix()
    theirs = region(directory, prefix)
    monkeypatch.setattr(os, "getuid", lambda: theirs.stat().st_uid + 1)
    shared_memory.remove(prefix)
    shared_memory.remove_unused()
    assert theirs.exists()


def test_a_system_without_the_directory_has_no_regions(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_DIRECTORY", directory / "missing")
    shared_memory.remove(shared_memory.new_prefix())
    shared_memory.remove_unused()
