"""A node that runs from the images: what docker-compose.yml starts, with SQLite and on this machine's network."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from stack.images import USER, Container
from stack.net import DIRECT, free_port
from stack.paths import ROOT
from stack.process import Process, StackError
from stack.setup import Progress

_COMPOSE = ROOT / "deploy" / "compose"
_CONFIG = "/etc/responses/sidecar.yaml"
_READY_SECONDS = 120.0
_ANSWER_SECONDS = 120.0


def try_node(directory: Path, progress: Progress) -> str:
    """Run a node below ``directory``, which is empty, until it has answered one request; the answer's text.

    The logs stay there.

    Raises:
        StackError: a part does not start, or there is no answer.
    """
    ports = {
        "grpc": free_port(),
        "http": free_port(),
        "metrics": free_port(),
        "envoy": free_port(),
        "admin": free_port(),
    }
    places = _places(directory)
    (directory / "sidecar.yaml").write_text(yaml.safe_dump(_configuration(ports)))
    with ExitStack() as ending:
        sidecar, envoy, triton = (_container(ending, target, places) for target in ("sidecar", "envoy", "triton-cpu"))
        sidecar.run("sh", "/make-secrets.sh", "/etc/responses/secrets")
        triton.run("cp", "--recursive", "/opt/triton/tokenizers/.", "/var/lib/tokenizers")
        progress("Starting Triton")
        server = _start(ending, triton, directory, *_triton_arguments(ports))
        server.wait_until(lambda: _answers(f"http://127.0.0.1:{ports['http']}/v2/health/ready"), _READY_SECONDS)
        progress("Starting the sidecar")
        serving = _start(ending, sidecar, directory, "serve", "--config", _CONFIG)
        serving.wait_until(
            lambda: _succeeds(sidecar, "responses-sidecar", "health", "--config", _CONFIG), _READY_SECONDS
        )
        progress("Starting Envoy")
        rendered = sidecar.run(
            *("responses-sidecar", "envoy", "render", "--config", _CONFIG, "--form", "standalone"),
            *("--listen", f"127.0.0.1:{ports['envoy']}", "--access-log", "/run/responses/access.log"),
        )
        (places[Path("/etc/envoy")] / "envoy.yaml").write_text(rendered)
        proxy = _start(ending, envoy, directory, "--config-path", "/etc/envoy/envoy.yaml", "--disable-hot-restart")
        proxy.wait_until(lambda: _answers(f"http://127.0.0.1:{ports['envoy']}/healthz"), _READY_SECONDS)
        progress("Asking the model")
        return _ask(f"http://127.0.0.1:{ports['envoy']}", _key(sidecar))


def _places(directory: Path) -> dict[Path, Path]:
    """Directories of the images' user, by where they are in containers."""
    inside = ["/etc/responses/secrets", "/etc/envoy", "/run/responses", "/var/lib/responses", "/var/lib/tokenizers"]
    places = {Path(place): directory / place.strip("/").replace("/", "-") for place in inside}
    directory.chmod(0o755)
    for place in places.values():
        place.mkdir(mode=0o700)
        os.chown(place, USER, USER)
    return places


def _container(ending: ExitStack, target: str, places: dict[Path, Path]) -> Container:
    directory = next(iter(places.values())).parent
    files = {directory / "sidecar.yaml": _CONFIG, _COMPOSE / "make-secrets.sh": "/make-secrets.sh"}
    container = Container(target, {**{outside: str(inside) for inside, outside in places.items()}, **files})
    ending.callback(container.remove)
    return container


def _start(ending: ExitStack, container: Container, directory: Path, *arguments: str) -> Process:
    """What the image runs, with ``arguments``."""
    entry = container.entry_point()
    process = container.start(directory / f"{Path(entry[0]).name}.log", *entry, *arguments)
    ending.callback(process.stop)
    return process


def _configuration(ports: dict[str, int]) -> dict[str, Any]:
    """The sidecar's configuration of docker-compose.yml, without PostgreSQL and with other addresses."""
    configuration: dict[str, Any] = yaml.safe_load((_COMPOSE / "sidecar.yaml").read_text())
    configuration["triton"]["address"] = f"127.0.0.1:{ports['grpc']}"
    configuration["admin"] = {"address": f"127.0.0.1:{ports['admin']}"}
    del configuration["store"]["url_file"]
    return configuration


def _triton_arguments(ports: dict[str, int]) -> list[str]:
    listeners = [
        f"--{name}-{what}={value}"
        for name in ("grpc", "http", "metrics")
        for what, value in (("address", "127.0.0.1"), ("port", ports[name]))
    ]
    return [
        "--model-repository=/opt/triton/models",
        "--backend-directory=/opt/triton/backends",
        "--allow-gpu-metrics=false",
        "--exit-timeout-secs=5",
        *listeners,
    ]


def _key(sidecar: Container) -> str:
    sidecar.run("responses-sidecar", "orgs", "create", "acme", "--config", _CONFIG)
    made = json.loads(sidecar.run("responses-sidecar", "keys", "create", "acme", "--config", _CONFIG, "--json"))
    return str(made["secret"])


def _ask(url: str, key: str) -> str:
    """The text of an answer; the node may still be looking at its model.

    Raises:
        StackError: there was none in time.
    """
    body = {"model": "smollm2-135m", "input": "What is a sidecar?", "max_output_tokens": 16}
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/infer/responses", json.dumps(body).encode(), headers)
    deadline = time.monotonic() + _ANSWER_SECONDS
    while True:
        try:
            with DIRECT.open(request, timeout=_ANSWER_SECONDS) as answer:
                text: str = json.load(answer)["output"][0]["content"][0]["text"]
                return text
        except (urllib.error.URLError, OSError) as error:
            if time.monotonic() > deadline:
                raise StackError(f"The node does not answer: {error}") from error
        time.sleep(0.5)


def _answers(url: str) -> bool:
    try:
        with DIRECT.open(url, timeout=5):
            return True
    except OSError:
        return False


def _succeeds(container: Container, *arguments: str) -> bool:
    try:
        container.run(*arguments)
    except StackError:
        return False
    return True
