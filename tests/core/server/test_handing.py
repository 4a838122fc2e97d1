"""A worker is handed what its supervisor has read, and nothing of what follows is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.config.load import load
from sidecar.server.handing import receive, written
from tests.core.config.test_config import GOOD, write


def test_a_configuration_comes_as_it_was(tmp_path: Path) -> None:
    config = load(write(tmp_path, {**GOOD, "surfaces": {"node": {"failed_event": False}}}))
    theirs, ours = os.pipe()
    os.write(ours, written(config) + b"more")
    received = receive(theirs)
    assert received == config
    assert list(received.surfaces.keys_set("surfaces")) == ["surfaces.node.failed_event"]
    assert os.read(theirs, 10) == b"more"
    os.close(ours)
    with pytest.raises(EOFError):
        receive(theirs)
    os.close(theirs)
