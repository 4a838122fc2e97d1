"""The documentation as a static site, for ``./dev docs``."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stack.paths import ROOT
from stack.process import StackError

CONFIGURATION = ROOT / "zensical.toml"
# It colours its words on whatever they are written to.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def build(directory: Path, docs: Path = ROOT / "docs") -> Path:
    """Build the site of ``docs`` into ``directory``, which is replaced, and return its first page.

    Its pages load nothing from other hosts, and can be opened from the file system; only the search needs a server.

    Raises:
        StackError: a page is faulty: a link in it leads nowhere, for example. The message has what the generator says.
    """
    # The generator writes beside its configuration, and keeps a cache there.
    with tempfile.TemporaryDirectory(prefix="site-") as place:
        work = Path(place)
        shutil.copytree(docs, work / "docs")
        shutil.copy(CONFIGURATION, work)
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict"],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            findings = _COLOURS.sub("", done.stdout).partition("Traceback")[0].strip()
            raise StackError(f"The site could not be built.\n{findings}")
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(work / "site", directory)
    return directory / "index.html"
