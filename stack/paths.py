"""Where the stack keeps its things: everything that is made at run time lies under ``.local/``."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from stack.process import StackError

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"
RUN = LOCAL / "run"
PUBLIC_STATE = LOCAL / "stack.json"
API_KEY = LOCAL / "key.json"
STATE = LOCAL / "state"
DIST = LOCAL / "dist"
SITE = LOCAL / "site"
TRITON_VENV = LOCAL / "triton-venv"
CLIENTS_VENV = LOCAL / "clients-venv"
SCHEMATHESIS_VENV = LOCAL / "schemathesis-venv"
TOKENIZER = LOCAL / "tokenizers" / "smollm2"

# In bytes. Linux takes 107 for the path of a Unix socket; the sidecar asks that its directory leaves room for the name.
_LONGEST_DIRECTORY = 80


def socket_directory(run_dir: Path) -> Path:
    """A directory for Unix sockets that only this user can enter, always the same for one ``run_dir``.

    It is ``<run_dir>/sockets``, or one in the system's temporary directory where that path is too long for a socket.

    Raises:
        StackError: the directory is somebody else's.
    """
    directory = run_dir / "sockets"
    if len(os.fsencode(directory)) > _LONGEST_DIRECTORY:
        digest = hashlib.sha256(os.fsencode(run_dir)).hexdigest()[:16]
        directory = Path(tempfile.gettempdir()) / f"responses-{digest}"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise StackError(f"{directory} is needed for sockets but is not a private directory of this user; remove it.")
    return directory
