"""The sidecar of the local stack: writes its configuration and runs the supervisor with its workers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from sidecar.cli.health import is_serving
from stack.net import peer_pid
from stack.paths import ROOT
from stack.process import Process

COMMAND = ("-m", "sidecar", "serve")
"""What follows the interpreter in the supervisor's command line; run in a checkout, it is that checkout's code."""


@dataclass(frozen=True)
class Model:
    """A model as clients name it, and the Triton model behind it.

    ``context_length`` is in tokens; ``settings`` are further members of the model's section in the configuration file.
    """

    name: str
    triton_model: str
    tokenizer: Path
    context_length: int = 2048
    settings: Mapping[str, Any] = field(default_factory=dict)

    def section(self) -> dict[str, Any]:
        """The member of ``models`` in the configuration file."""
        return {
            "name": self.name,
            "triton_model": self.triton_model,
            "tokenizer": str(self.tokenizer),
            "context_length": self.context_length,
            **self.settings,
        }


@dataclass(frozen=True)
class NativeModel:
    """A model of upstreams that speak the Responses API; ``routes`` and ``settings`` as in the configuration file."""

    name: str
    routes: Sequence[Mapping[str, Any]]
    context_length: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def section(self) -> dict[str, Any]:
        """The member of ``models`` in the configuration file."""
        routes = [dict(route) for route in self.routes]
        return {"name": self.name, "context_length": self.context_length, "routes": routes, **self.settings}


AnyModel = TypeVar("AnyModel", bound=Model | NativeModel)

EXAMPLE_PRICE = {"from": "2026-01-01", "input": "0.15", "cached_input": "0.075", "output": "0.60"}
"""That of docs/billing.md, in USD for a million tokens: models that cost nothing would show nothing of billing."""


def with_example_price(model: AnyModel) -> AnyModel:
    """``model`` with the price of the example."""
    return replace(model, settings={**model.settings, "prices": [dict(EXAMPLE_PRICE)]})


def with_catalog_entry(model: AnyModel) -> AnyModel:
    """``model`` with an entry in the catalog, where it has none of its own."""
    return replace(model, settings={"catalog": {"slug": f"local/{model.name}"}, **model.settings})


def configure(
    models: Sequence[Model | NativeModel],
    triton: Mapping[str, str],
    workers: int,
    sockets: Path,
    run_dir: Path,
    settings: Mapping[str, Any],
) -> Path:
    """Write the configuration file; ``triton`` is its section on that, ``settings`` are further members of it."""
    content = {
        "node": "local",
        "workers": workers,
        "sockets": str(sockets),
        "triton": dict(triton),
        "models": [model.section() for model in models],
        **settings,
    }
    path = run_dir / "sidecar.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


class Sidecar:
    """A running supervisor and its workers, each on a Unix socket of its own."""

    def __init__(self, config: Path, worker_sockets: Sequence[Path], run_dir: Path) -> None:
        """Start it with the configuration file ``config``."""
        self.worker_sockets = worker_sockets
        self.config = config
        self.process = Process(
            "The sidecar",
            [sys.executable, *COMMAND, "--config", str(self.config.resolve())],
            run_dir / "sidecar.log",
            directory=ROOT,
        )

    def wait_ready(self, seconds: float = 120) -> None:
        """Wait until every worker says SERVING.

        Raises:
            StackError: the supervisor ended or a worker was not ready in time.
        """
        self.process.wait_until(lambda: all(map(is_serving, self.worker_sockets)), seconds)

    def worker_pids(self) -> list[int]:
        """The process ids of the workers that listen now, in the order of their sockets."""
        pids = map(peer_pid, self.worker_sockets)
        return [pid for pid in pids if pid is not None]


def worker_sockets(sockets: Path, workers: int) -> list[Path]:
    """Where the workers listen."""
    return [sockets / f"worker-{index}.sock" for index in range(workers)]
