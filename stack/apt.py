"""Debian's packages, installed into the system where this process may do that."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable


def install(package: str, progress: Callable[[str], None]) -> None:
    """Install a package as root on a system with apt; elsewhere, or where it cannot be had, nothing happens."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    progress(f"Installing the system's {package}")
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        subprocess.run(
            ["apt-get", "--quiet", *arguments],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            check=False,
        )
