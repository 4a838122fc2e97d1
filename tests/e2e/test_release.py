"""What ``./dev release`` makes is whole: the wheel works outside the checkout, with nothing but the locked packages."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

from sidecar.cli.health import is_serving
from sidecar.config.load import load
from stack import release
from stack.net import free_port
from stack.paths import ROOT, TOKENIZER
from stack.process import Process
from stack.triton import Triton
from tests.core.repository.test_dependencies import locked

PACKAGES = ("sidecar", "conformance")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release."""
    directory = tmp_path_factory.mktemp("release") / "dist"
    release.build(directory)
    return directory


@pytest.fixture(scope="module")
def command(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``responses-sidecar`` of a bare environment: the wheel, and the locked packages as they are installed here."""
    venv = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (wheel,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(venv), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    (site_packages,) = venv.glob("lib/python*/site-packages")
    of_the_lock = {name for name, _ in locked("requirements.lock")}
    for package in distributions():
        # Those for other systems are not installed.
        if canonicalize_name(package.name) in of_the_lock:
            _link(package, site_packages)
    return venv / "bin" / "responses-sidecar"


def _link(package: Distribution, site_packages: Path) -> None:
    """Put what an installed package consists of into another environment too."""
    for name in {Path(file).parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        link = site_packages / name
        if not link.exists():
            link.symlink_to(str(package.locate_file(name)))


def tracked() -> set[str]:
    """The files of the packages that the repository has."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, check=True)
    return {name for name in listed.stdout.decode().split("\0") if name}


def test_the_wheel_has_every_file_of_the_packages_and_no_other(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith(tuple(f"{one}/" for one in PACKAGES))}
    assert packed == tracked()


def test_the_source_has_what_the_wheel_is_built_from_and_nothing_of_the_tests(dist: Path) -> None:
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= tracked() | {"pyproject.toml", "README.md", "LICENSE"}
    assert not {name for name in names if name.startswith(("tests", "bench", "stack"))}


def test_the_sbom_lists_the_packages_of_the_lock(dist: Path) -> None:
    (sbom,) = dist.glob("*.cdx.json")
    document = json.loads(sbom.read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["version"] == release.project_version()
    listed = {(component["name"], component["version"]) for component in document["components"]}
    assert listed == set(locked("requirements.lock"))
    assert (dist / "requirements.lock").read_bytes() == release.LOCK.read_bytes()


def test_the_installed_command_tells_its_version_and_runs_outside_the_checkout(command: Path, tmp_path: Path) -> None:
    assert _run(command, tmp_path, "--version").strip() == release.project_version()
    assert "models" in json.loads(_run(command, tmp_path, "config", "schema"))["properties"]
    where = "import sidecar, conformance; print(sidecar.__file__, conformance.__file__)"
    python = command.with_name("python")
    files = subprocess.run([python, "-c", where], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert all(Path(file).is_relative_to(command.parents[1]) for file in files.split())


def test_a_configuration_for_a_triton_is_written_checked_and_served(
    command: Path, triton: Triton, short_tmp: Path
) -> None:
    address, file = f"127.0.0.1:{triton.grpc_port}", ("--config", "node/sidecar.yaml")
    (short_tmp / "node").mkdir()
    told = _run(command, short_tmp, "init", "--triton", address, "--tokenizers", str(TOKENIZER.parent), *file)
    assert "ok    smollm2: contract token_level, served as smollm2, 8192 tokens" in told
    assert "scripted_ensemble: contract ensemble, left out: it seems to be s" in told
    assert "smollm2_vllm is not loaded" in told
    assert "FAIL" not in _run(command, short_tmp, "check", *file)
    config = load(short_tmp / "node/sidecar.yaml")
    assert {"scripted", "scripted_llm_api", "scripted_vllm", "smollm2"} <= {model.name for model in config.models}
    assert _refused(command, short_tmp, "init", "--triton", address, *file) == (
        "node/sidecar.yaml is there already: it is left as it is. --config names another file.\n"
    )
    node = Process("The sidecar", [str(command), "serve", *file], short_tmp / "serve.log", directory=short_tmp)
    try:
        node.wait_until(lambda: all(is_serving(config.socket(index)) for index in range(config.workers)), 60)
    finally:
        node.stop()


def test_a_triton_that_does_not_answer_is_told(command: Path, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    told = _refused(command, tmp_path, "init", "--triton", address, status=1)
    assert told.startswith(f"Triton at {address} does not answer (UNAVAILABLE)")
    assert not (tmp_path / "sidecar.yaml").exists()


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A directory whose path leaves room for a Unix socket's."""
    with tempfile.TemporaryDirectory(prefix="init-") as directory:
        yield Path(directory)


def _refused(command: Path, directory: Path, *arguments: str, status: int = 2) -> str:
    done = subprocess.run([command, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == status
    return done.stdout


def _run(command: Path, directory: Path, *arguments: str) -> str:
    done = subprocess.run([command, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
