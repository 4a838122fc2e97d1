"""The Dockerfile by its linter, and what the linter does not look for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stack.paths import ROOT

HADOLINT = Path(sys.executable).with_name("hadolint")
DOCKERFILE = (ROOT / "Dockerfile").read_text()
# What follows each FROM, by the stage's name.
STAGES = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.DOTALL | re.MULTILINE))
IMAGES = ["sidecar", "envoy", "triton-cpu"]


def lint(text: str) -> str:
    return subprocess.run([HADOLINT, "--no-color", "-"], input=text, capture_output=True, text=True, check=False).stdout


def test_the_linter_finds_nothing() -> None:
    assert not lint(DOCKERFILE)


def test_the_linter_finds_a_floating_base() -> None:
    assert "DL3006" in lint("FROM debian\nRUN true\n")


def test_the_base_is_pinned_by_its_digest() -> None:
    assert re.search(r"^ARG DEBIAN=\S+:\S+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${DEBIAN}", "base", "python", "pip"}


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_as_a_user_without_rights(image: str) -> None:
    users = re.findall(r"^USER (\S+)$", STAGES[image], re.MULTILINE)
    assert users == ["10001:10001"]
    assert "\nENTRYPOINT [" in STAGES[image]


def test_the_sidecar_is_what_is_built_by_default() -> None:
    assert list(STAGES)[-1] == "sidecar"
    assert "HEALTHCHECK" in STAGES["sidecar"]


def test_every_package_of_python_comes_from_a_lock() -> None:
    installs = re.findall(r"pip\S* (?:--python \S+ )?install (.*?)(?:\\\n|\n)", DOCKERFILE)
    assert len(installs) == 5
    assert all("--require-hashes" in arguments or "--no-index" in arguments for arguments in installs)


def test_the_context_has_what_is_copied() -> None:
    given = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for sources in re.findall(r"^COPY ([^-\s].*) \S+$", DOCKERFILE, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists()
            assert source.split("/")[0] in given
