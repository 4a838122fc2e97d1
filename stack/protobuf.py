"""Generates the modules of the messages that ``proto/`` describes, for ``./dev proto``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stack.paths import ROOT
from stack.process import StackError

_SOURCES = ROOT / "proto"


def generate(directory: Path) -> list[Path]:
    """Write the modules and their type stubs below ``directory``, each where its source lies below ``proto/``.

    Returns the files written, relative to ``directory``.

    Raises:
        StackError: a source is faulty; the compiler has said why.
    """
    sources = [path.relative_to(_SOURCES) for path in sorted(_SOURCES.rglob("*.proto"))]
    compiler = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={_SOURCES}"]
    outputs = [f"--python_out={directory}", f"--pyi_out={directory}"]
    if subprocess.run([*compiler, *outputs, *map(str, sources)], check=False).returncode != 0:
        raise StackError("The messages in proto/ could not be generated.")
    return [path.with_name(f"{path.stem}_pb2{suffix}") for path in sources for suffix in (".py", ".pyi")]
