"""The images of the Dockerfile, built and run without a container engine, as far as that goes.

buildah, a package of Debian's, runs the Dockerfile's steps in a chroot. The base is a bare Debian that mmdebstrap makes
from Debian's mirror: the image that the Dockerfile names is on no mirror, but is made in the same way. What runs from
the images is in chroots too, as the images' user, and shares this machine's network.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from stack import apt
from stack.paths import ROOT
from stack.process import Process, StackError, run
from stack.setup import Progress

TARGETS = ("sidecar", "envoy", "triton-cpu")
USER = 10001
"""The user and the group of the images."""

_PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
_RELEASE = "bookworm"
_BASE = "localhost/responses-base"
_ISOLATION = "--isolation=chroot"


def install(progress: Progress) -> None:
    """Install Debian's buildah and mmdebstrap, unless they are there.

    Raises:
        StackError: this process is not root's, or they cannot be had.
    """
    if os.geteuid() != 0:
        raise StackError("Building images in a chroot needs root.")
    for program, package in _PROGRAMS.items():
        if not shutil.which(program):
            apt.install(package, progress)
        if not shutil.which(program):
            raise StackError(f"{program} is needed; on Debian: sudo apt-get install {package}")


def build(progress: Progress) -> None:
    """Build all images, as ``localhost/responses-<target>``.

    Layers of an earlier time are taken again where nothing has changed; so is the base.

    Raises:
        StackError: a step failed; the message quotes its words.
    """
    if _BASE not in run(["buildah", "images", "--format", "{{.Name}}"], "buildah does not work"):
        progress(f"Making a bare Debian {_RELEASE}")
        _make_base()
    for target in TARGETS:
        progress(f"Building the image {target}")
        with tempfile.TemporaryDirectory() as directory:
            command = ["buildah", "bud", _ISOLATION, "--layers", f"--build-arg=DEBIAN={_BASE}", f"--target={target}"]
            command += [*_trust(Path(directory)), f"--tag=localhost/responses-{target}", str(ROOT)]
            run(command, f"The image {target} could not be built")


def _make_base() -> None:
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / "base.tar"
        run(["mmdebstrap", "--quiet", "--variant=minbase", _RELEASE, archive], "Debian could not be installed")
        container = run(["buildah", "from", "scratch"], "buildah does not work").strip()
        run(["buildah", "add", "--quiet", container, archive, "/"], "The base could not be unpacked")
        run(["buildah", "commit", "--quiet", "--rm", container, _BASE], "The base could not be kept")


def _trust(directory: Path) -> list[str]:
    """Options that have pip trust the certificate authorities that it trusts here, as a proxy may need."""
    authorities = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if authorities is None:
        return []
    settings = directory / "pip.conf"
    settings.write_text("[global]\ncert = /etc/authorities.pem\n")
    return [f"--volume={settings}:/etc/pip.conf:ro", f"--volume={authorities}:/etc/authorities.pem:ro"]


class Container:
    """A container of an image."""

    def __init__(self, target: str, volumes: dict[Path, str]) -> None:
        """Make it, with ``volumes`` of this machine by where they are in it; nothing runs in it yet.

        Raises:
            StackError: there is no such image.
        """
        image = f"localhost/responses-{target}"
        self._target = target
        self._id = run(["buildah", "from", "--pull-never", image], f"There is no image {image}").strip()
        self._mounts = [f"--volume={source}:{place}" for source, place in volumes.items()]

    def command(self, *arguments: str) -> list[str]:
        """What runs ``arguments`` in it, as the image's user."""
        return ["buildah", "run", _ISOLATION, f"--user={USER}:{USER}", *self._mounts, self._id, "--", *arguments]

    def run(self, *arguments: str) -> str:
        """The output of a command that ends by itself.

        Raises:
            StackError: it failed.
        """
        return run(self.command(*arguments), f"{arguments[0]} failed in the image {self._target}")

    def start(self, log: Path, *arguments: str) -> Process:
        """A command that goes on."""
        return Process(self._target, self.command(*arguments), log)

    def entry_point(self) -> list[str]:
        """What the image runs."""
        image: dict[str, Any] = yaml.safe_load(run(["buildah", "inspect", self._id], "buildah does not work"))
        entry: Sequence[str] = image["OCIv1"]["config"]["Entrypoint"]
        return list(entry)

    def remove(self) -> None:
        """Remove it, and what was written in it."""
        run(["buildah", "rm", self._id], "A container could not be removed")
