"""The commands of ``./dev``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sidecar.config.models import MOST_WORKERS
from sidecar.config.processors import Shares, shares, usable_processors
from sidecar.envoy.settings import Wire
from stack import image_node, postgres, prometheus, protobuf, setup, site
from stack import images as image_builds
from stack import release as releases
from stack.local import SCRIPTED_MODELS, SMOLLM2, LocalStack
from stack.net import why_not_port
from stack.paths import API_KEY, DIST, PUBLIC_STATE, ROOT, RUN, SITE, STATE, TRITON_VENV, socket_directory
from stack.process import StackError
from stack.report import Steps, console, dead_models, how_to_use
from stack.runs import Run
from stack.sidecar import NativeModel, with_example_price
from stack.upstreams import (
    NATIVE_FAILOVER,
    NATIVE_SCRIPTED,
    NATIVE_SMOLLM2,
    LlamaServer,
    ScriptedUpstream,
    Upstream,
)

app = typer.Typer(
    help="Runs and tests the Responses API on real parts: Envoy, the sidecar and Triton.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# How long Ctrl-C waits for answers under way.
_DRAIN_SECONDS = 5
# Two processes, of which each runs whole files, with real parts of its own.
_TEST_RUNS = (
    ("-m", "core", "--numprocesses=2", "tests/core", "tests/fuzz"),
    (
        "-m",
        "not core and not alone",
        "--numprocesses=2",
        "--dist=loadfile",
        "--ignore=tests/core",
        "--ignore=tests/fuzz",
    ),
    ("-m", "alone", "tests/hostile"),
)
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def main() -> None:
    """Run a command; what the user can put right is told in one sentence, with exit status 1."""
    try:
        app(prog_name="./dev")
    except StackError as error:
        # Logs hold brackets that would be taken for markup.
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(1)


@app.command()
def up(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of 127.0.0.1 to serve on.")] = 8080,
    wire: Annotated[Wire, typer.Option(help="How requests go from Envoy to Triton.")] = "tunnel",
    triton: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="gRPC address of a running Triton that serves the models of triton/."),
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Worker processes of the sidecar; auto: half of the processors. Envoy gets the others.",
        ),
    ] = "auto",
    scripted: Annotated[
        bool, typer.Option("--scripted", help="Serve the scripted models too, which answer what the prompt tells them.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when ready; ./dev down ends the stack.")] = False,
) -> None:
    """Install and run the local stack; Ctrl-C ends it."""
    _refuse_clashes(port)
    if triton is not None:
        _look_for_triton(triton)
    for number in _ENDING:
        # Also SIGINT, which a shell without job control makes its background commands ignore.
        signal.signal(number, signal.default_int_handler)
    shutil.rmtree(RUN, ignore_errors=True)
    run = Run.begin()
    keep = False
    try:
        stack = _start(port, wire, triton, _shares(workers), scripted)
        keep = detach
        _tell(stack, "./dev down ends it." if detach else "Ctrl-C ends everything.")
        if not detach:
            watch(stack)
    except KeyboardInterrupt:
        console.print("\nEnding the stack.")
    finally:
        if not keep:
            # A second Ctrl-C must not leave parts behind.
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            _end(run)


def watch(stack: LocalStack) -> NoReturn:
    """Wait until a part ends; a model that ends is told once.

    Raises:
        StackError: a part has ended.
    """
    told: set[str] = set()
    while True:
        time.sleep(0.5)
        stack.check_alive()
        if dead := [name for name in stack.dead_models() if name not in told]:
            told.update(dead)
            console.print(dead_models(dead, stack.run_dir), markup=False, soft_wrap=True)


def _refuse_clashes(port: int) -> None:
    run = Run.load()
    if run is not None and run.alive():
        raise StackError("A stack of this checkout already runs, or a crash left parts of it: end it with ./dev down.")
    refuse_port(port)


def refuse_port(port: int) -> None:
    """Look whether Envoy can have the port.

    Raises:
        StackError: it cannot.
    """
    if why := why_not_port(port):
        raise StackError(f"Port {port} {why}: choose another one with --port.")


def _look_for_triton(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise StackError(f"--triton takes HOST:PORT, not {address}.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise StackError(f"Nothing answers at {address} ({error}): is Triton's gRPC port meant?") from error


def _shares(workers: str) -> Shares:
    processors = usable_processors()
    if workers == "auto":
        return shares(processors)
    if not workers.isdecimal() or not 1 <= int(workers) <= MOST_WORKERS:
        raise StackError(f"--workers takes auto or a number from 1 to {MOST_WORKERS}, not {workers}.")
    return Shares(max(1, processors - int(workers)), int(workers))


def _start(port: int, wire: Wire, triton: str | None, shares: Shares, scripted: bool) -> LocalStack:
    with Steps() as progress:
        # Without a Triton of its own too: the environment has llama.cpp's server and the tokenizer.
        setup.install_triton(progress)
        upstreams: list[Upstream] = []
        native_models: list[NativeModel] = []
        if wire == "tunnel":
            upstreams.append(LlamaServer(TRITON_VENV, RUN))
            native_models.append(NATIVE_SMOLLM2)
            if scripted:
                upstreams.append(ScriptedUpstream(RUN))
                native_models.extend((NATIVE_SCRIPTED, NATIVE_FAILOVER))
        stack = LocalStack(
            RUN,
            models=[with_example_price(model) for model in (SMOLLM2, *(SCRIPTED_MODELS if scripted else ()))],
            native_models=[with_example_price(model) for model in native_models],
            upstreams=upstreams,
            wire=wire,
            port=port,
            workers=shares.workers,
            state=STATE,
            key_file=API_KEY,
            triton_address=triton,
            sidecar_settings={"drain": _DRAIN_SECONDS},
            envoy_settings={"threads": shares.envoy_threads},
            progress=progress,
        )
        stack.start()
    return stack


def _tell(stack: LocalStack, ending: str) -> None:
    models = stack.names()
    state = {
        "url": stack.url,
        "admin_url": f"http://{stack.admin}",
        "usage_feed": stack.usage_feed,
        "api_key": stack.api_key,
        "models": models,
        "surfaces": {
            "node": {"url": stack.url, "api_key": stack.api_key, "models": models},
            "bureau": {"url": stack.bureau_url, "api_key": stack.project_key, "models": stack.slugs()},
        },
        "pids": stack.pids(),
    }
    PUBLIC_STATE.touch(mode=0o600)
    PUBLIC_STATE.write_text(json.dumps(state, indent=2) + "\n")
    console.print(
        how_to_use(
            stack.url, stack.api_key, models, stack.bureau_url, stack.project_key, f"http://{stack.admin}/status/"
        ),
        markup=False,
        soft_wrap=True,
    )
    console.print(f"The stack is ready; its logs are in {RUN.relative_to(ROOT)}/. {ending}")


def _end(run: Run) -> None:
    try:
        run.end()
    finally:
        PUBLIC_STATE.unlink(missing_ok=True)
        shutil.rmtree(socket_directory(RUN), ignore_errors=True)


@app.command()
def down() -> None:
    """End the stack that ./dev up started, or what a crash left of it."""
    run = Run.load()
    if run is None:
        console.print("No stack of this checkout runs.")
        return
    run.ask_owner_to_end()
    _end(run)
    console.print("The stack has ended.")


@app.command(context_settings=_PASS_ON)
def test(context: typer.Context) -> None:
    """Install what the tests need and run them all; with arguments they go to pytest instead."""
    # Installing waits for the network most of the time.
    with ThreadPoolExecutor(1) as beside, Steps() as progress:
        checked = beside.submit(check)
        postgres.install(progress)
        prometheus.install(progress)
        setup.install_systemd(progress)
        setup.install_triton(progress)
        setup.install_node_packages(progress)
        setup.install_browser(progress)
        setup.install_python_clients(progress)
        setup.install_schemathesis(progress)
    checked.result()
    if sys.version_info >= (3, 12):
        # Counts a line once and then leaves it alone, where a tracer is called for every line every time.
        os.environ.setdefault("COVERAGE_CORE", "sysmon")
    if context.args:
        _become(sys.executable, "-m", "pytest", *context.args)
    # The slowest are told, so that nobody has to search for them when all takes too long.
    command = [sys.executable, "-m", "pytest", "--durations=25"]
    runs = [subprocess.run([*command, *run], cwd=ROOT, check=False) for run in _TEST_RUNS]
    if any(run.returncode for run in runs):
        raise StackError("Some tests failed.")


@app.command()
def check() -> None:
    """Run the linter, the formatter's check and the type checker."""
    for arguments in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        if subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode != 0:
            raise StackError(f"{' '.join(arguments)} found something.")


@app.command()
def goldens() -> None:
    """Write the expected files in tests/data anew."""
    _become(sys.executable, "-m", "tests.core.goldens")


@app.command()
def proto() -> None:
    """Generate the modules of the messages in proto/."""
    for path in protobuf.generate(ROOT):
        console.print(path, markup=False)


@app.command()
def docs() -> None:
    """Build the documentation as a static site, without anything that it would load from elsewhere."""
    index = site.build(SITE)
    console.print(f"Open {index.relative_to(ROOT)} in a browser; its search needs a web server, which may be this one:")
    console.print(f"  .venv/bin/python -m http.server --bind 127.0.0.1 --directory {index.parent.relative_to(ROOT)}")


@app.command()
def release() -> None:
    """Build what a release consists of: the wheel, the source, the lock and an SBOM of it."""
    for path in releases.build(DIST):
        console.print(path.relative_to(ROOT), markup=False)


@app.command()
def images() -> None:
    """Build the Dockerfile's images without a container engine, run a node from them and ask it. Takes minutes."""
    with Steps() as progress, tempfile.TemporaryDirectory(prefix="responses-images-") as directory:
        image_builds.install(progress)
        image_builds.build(progress)
        text = image_node.try_node(Path(directory), progress)
    console.print(f"The node answered: {text!r}", markup=False)


@app.command(context_settings=_PASS_ON)
def bench(context: typer.Context) -> None:
    """Measure Envoy and the sidecar in front of a fast fake Triton; ./dev bench --help lists the options."""
    _become(sys.executable, "-m", "bench", *context.args)


@app.command(context_settings=_PASS_ON)
def soak(context: typer.Context) -> None:
    """Send many mixed requests while parts are killed, and see what is left: --help lists options."""
    _become(sys.executable, "-m", "tests.soak", *context.args)


def _become(*argv: str) -> NoReturn:
    os.execv(argv[0], argv)
