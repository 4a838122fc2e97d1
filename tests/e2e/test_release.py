"""What ``./dev release`` makes is whole: the wheel works outside the checkout, with nothing but the locked packages."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

from stack import release
from stack.local import LocalStack
from stack.net import DIRECT, free_port
from stack.paths import ROOT, TOKENIZER
from stack.triton import Triton
from tests.core.repository.test_dependencies import locked
from tests.e2e.reader import SHOWN_KEY, Reader

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


@pytest.mark.timeout(400)
def test_who_follows_the_quick_start_gets_answers(
    command: Path, stack: LocalStack, triton: Triton, short_tmp: Path
) -> None:
    here, own = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8").split("## With your own Triton")
    programs = [command.parent, Path(sys.executable).parent]
    with Reader(short_tmp, programs, {"http://127.0.0.1:8080/v1/infer": stack.url, SHOWN_KEY: stack.api_key}) as reader:
        reader.follow(here)
        assert len(reader.outputs) == 2
        assert "event: response.completed" in reader.outputs[0] or "event: response.incomplete" in reader.outputs[0]
    listen = f"127.0.0.1:{free_port()}"
    meant = {
        "127.0.0.1:8001": f"127.0.0.1:{triton.grpc_port}",
        "/models": str(TOKENIZER.parent),
        "127.0.0.1:8090": listen,
    }
    preparing, asking = own.split("Now Triton's model answers")
    with Reader(short_tmp, programs, meant) as reader:
        reader.follow(preparing)
        told, _, checked, _ = reader.outputs
        assert "ok    smollm2: contract token_level, served as smollm2, 8192 tokens" in told
        assert "scripted_ensemble: contract ensemble, left out: it seems to be s" in told
        assert "smollm2_vllm is not loaded" in told
        assert "contract token_level" in checked
        reader.wait_until(lambda: _answers(f"http://{listen}/v1/infer/models", reader.key), 90)
        reader.follow(asking)
        assert json.loads(reader.outputs[-1])["output"]


def test_a_configuration_that_is_there_is_left_as_it_is(command: Path, triton: Triton, tmp_path: Path) -> None:
    (tmp_path / "sidecar.yaml").write_text("mine")
    told = _refused(command, tmp_path, "init", "--triton", f"127.0.0.1:{triton.grpc_port}")
    assert told == "sidecar.yaml is there already: it is left as it is. --config names another file.\n"
    assert (tmp_path / "sidecar.yaml").read_text() == "mine"


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


def _answers(url: str, key: str) -> bool:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"})
    try:
        with DIRECT.open(request, timeout=5):
            return True
    except OSError:
        return False


def _refused(command: Path, directory: Path, *arguments: str, status: int = 2) -> str:
    done = subprocess.run([command, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == status
    return done.stdout


def _run(command: Path, directory: Path, *arguments: str) -> str:
    done = subprocess.run([command, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
