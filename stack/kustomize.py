"""Manifests of Kubernetes as kustomize makes them of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from stack import debian
from stack.paths import LOCAL
from stack.process import run


def build(directory: Path) -> list[dict[str, Any]]:
    """The objects of an overlay, by kubectl or kustomize, or else Debian's kustomize, which is downloaded.

    Raises:
        StackError: the overlay cannot be built, or kustomize not be had.
    """
    output = run([*_program(), str(directory)], f"kustomize could not build {directory.name}")
    return [content for content in yaml.safe_load_all(output) if content]


def _program() -> list[str]:
    if kubectl := shutil.which("kubectl"):
        return [kubectl, "kustomize"]
    return [shutil.which("kustomize") or str(debian.unpack_kustomize(LOCAL / "kustomize")), "build"]
