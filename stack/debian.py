"""Programs of a Debian release that this system is not, unpacked into a directory; the system stays unchanged."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stack.process import StackError, run

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_PYTHON = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libpython3.11")


def unpack_python(directory: Path) -> Path:
    """Python 3.11 of Debian 12, in ``directory``; its interpreter.

    It finds its library relative to itself; the shared libraries that it loads are those of the system's own Python.

    Raises:
        StackError: the system has no apt, its mirror no Debian 12, or the interpreter does not run here.
    """
    return _unpack(directory, "bookworm", _PYTHON, "usr/bin/python3.11", ("-c", "import ctypes, ssl, venv"))


def unpack_kustomize(directory: Path) -> Path:
    """kustomize of Debian 13, in ``directory``; the program.

    Raises:
        StackError: the system has no apt, its mirror no Debian 13, or the program does not run here.
    """
    return _unpack(directory, "trixie", ("kustomize",), "usr/bin/kustomize", ("version",))


def unpack_prometheus(directory: Path) -> Path:
    """Prometheus of Debian 12, in ``directory``; the program, beside which is promtool.

    Raises:
        StackError: the system has no apt, its mirror no Debian 12, or the program does not run here.
    """
    return _unpack(directory, "bookworm", ("prometheus",), "usr/bin/prometheus", ("--version",))


def _unpack(directory: Path, release: str, packages: Sequence[str], program: str, trial: Sequence[str]) -> Path:
    """Download packages from the mirror that the system's apt uses, unless ``directory`` has them; their program.

    apt checks the signature of the release; root is not needed. The program must run with the arguments ``trial``.

    Raises:
        StackError: the system has no apt, its mirror no such release, or the program does not run here.
    """
    if (directory / program).exists():
        return directory / program
    if not shutil.which("apt-get"):
        raise StackError("this system has no apt to get it with")
    work = directory.with_name(directory.name + ".partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    _download(work, release, packages)
    for package in work.glob("*.deb"):
        run(["dpkg-deb", "--extract", package, work / "root"], "a package could not be unpacked")
    run([work / "root" / program, *trial], "it does not run on this system")
    # Only a complete directory gets the final name.
    (work / "root").rename(directory)
    shutil.rmtree(work)
    return directory / program


def _download(work: Path, release: str, packages: Sequence[str]) -> None:
    """Put the packages into ``work``, where apt keeps all that it would else keep in the system's directories."""
    uris = run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main"],
        "apt cannot tell its mirror",
    )
    sources = work / "sources.list"
    sources.write_text(
        "".join(
            f"deb [target=Packages signed-by={_KEYRING}] {uri} {release} main\n" for uri in sorted(set(uris.split()))
        )
    )
    for part in ("state/lists", "cache/archives"):
        (work / part / "partial").mkdir(parents=True)
    private_apt = [
        "apt-get",
        "--quiet",
        f"--option=Dir::State={work / 'state'}",
        f"--option=Dir::Cache={work / 'cache'}",
        f"--option=Dir::Etc::SourceList={sources}",
        "--option=Dir::Etc::SourceParts=-",
        # The user that apt would else download as may not enter a private directory.
        "--option=APT::Sandbox::User=root",
    ]
    # It fails for each of the system's other repositories, which have no such release.
    subprocess.run([*private_apt, "update"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    run([*private_apt, "download", *packages], "apt cannot download it", work)
