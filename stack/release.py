"""What a release consists of, for ``./dev release``: the wheel, its source, the lock, and a list of what is in that."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

from stack.paths import ROOT
from stack.process import run

LOCK = ROOT / "requirements.lock"


def build(directory: Path) -> list[Path]:
    """Write the release's files into ``directory``, which is emptied first, and return them.

    The wheel is built from the source distribution, so that one that lacks a file is noticed. The SBOM lies beside the
    wheel and not in its ``sboms`` directory (PEP 770): that is for what is inside a wheel, and ours has nothing of
    others; the SBOM lists the packages of the lock, which is what a node installs.

    Raises:
        StackError: something could not be built.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", directory)
    run(command, "The packages could not be built", ROOT)
    shutil.copy(LOCK, directory)
    _write_sbom(directory / f"responses_sidecar-{project_version()}.cdx.json")
    return sorted(directory.iterdir())


def project_version() -> str:
    """The version that ``pyproject.toml`` says."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def _write_sbom(path: Path) -> None:
    """A CycloneDX document of the locked packages, validated by the tool that makes it."""
    command = (
        *(sys.executable, "-m", "cyclonedx_py", "requirements", LOCK, "--pyproject", ROOT / "pyproject.toml"),
        *("--mc-type", "application", "--output-reproducible", "--output-format", "JSON", "--output-file", path),
    )
    run(command, "The SBOM could not be made", ROOT)
