"""The whole local stack: Triton, the sidecar and Envoy, started in this order and ended in the other."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sidecar.config.load import load
from sidecar.envoy.derive import settings_of
from sidecar.envoy.settings import EGRESS_SOCKET, Wire
from sidecar.generation.formats import FORMATS
from stack import triton
from stack.envoy import Envoy
from stack.first_key import first_key, project_key
from stack.net import DIRECT, free_port
from stack.paths import TOKENIZER, TRITON_VENV, socket_directory
from stack.process import Process, StackError
from stack.sidecar import Model, NativeModel, Sidecar, configure, with_catalog_entry, worker_sockets
from stack.upstreams import Serving, Upstream

# It reads some 50 tokens of a prompt in a second, so that a full context takes minutes.
SMOLLM2 = Model("smollm2-135m", "smollm2", TOKENIZER, context_length=8192, settings={"first_token_timeout": 600.0})
# The script comes last in the prompt; what real clients put before it takes several thousand tokens.
SCRIPTED = Model("scripted", "scripted", TOKENIZER, context_length=32768)


def _by_contract(token_level: Model) -> dict[str, Model]:
    """The other contracts' models; those of SmolLM2 have a smaller context, so that all of them fit into memory."""
    others = ("ensemble", "llm_api", "vllm")
    return {
        "token_level": token_level,
        **{
            name: Model(f"{token_level.name}-{name}", f"{token_level.triton_model}_{name}", TOKENIZER)
            for name in others
        },
    }


THINKING = replace(SCRIPTED, name="scripted-thinking", settings={"reasoning_format": "think"})
"""The scripted model, whose script holds a reasoning phase."""

SCRIPTED_BY_FORMAT = {
    name: replace(SCRIPTED, name=f"{SCRIPTED.name}-{name}", settings={"tool_format": name}) for name in FORMATS
}
"""The scripted model, whose script holds calls as models of a family write them."""

SMOLLM2_BY_CONTRACT = _by_contract(SMOLLM2)
SCRIPTED_BY_CONTRACT = _by_contract(SCRIPTED)

SCRIPTED_MODELS = (SCRIPTED, THINKING, *SCRIPTED_BY_FORMAT.values())
"""What ``./dev up --scripted`` serves beside the model that writes by itself."""

Progress = Callable[[str], None]


class LocalStack:
    """The real parts behind one URL, as a context manager.

    Each part can be ended and started again by itself (``stack.sidecar.process.kill()``, ``stack.start_sidecar()``);
    it keeps its ports and sockets. ``run_dir`` gets the rendered configurations and the logs.

    Without ``accounts`` there is no key, and nothing is accounted for. ``state`` is what the sidecar keeps,
    ``key_file`` where the first organization's key is, both in ``run_dir`` unless they are to outlive it.
    ``upstreams`` are running ones that serve the ``native_models``, on the tunnel wire; they are not ended here.
    ``triton_address`` (``host:port`` of gRPC) uses a Triton that already runs; ``sidecar_settings`` are further
    top-level members of the sidecar's configuration, ``envoy_settings`` other than what follows from that for Envoy.
    ``triton_traces`` is the URL of a collector that a Triton started here sends its spans to.
    """

    triton: triton.Triton | None = None
    sidecar: Sidecar
    envoy: Envoy

    def __init__(
        self,
        run_dir: Path,
        *,
        models: Sequence[Model] = (SMOLLM2,),
        native_models: Sequence[NativeModel] = (),
        upstreams: Sequence[Serving] = (),
        wire: Wire = "tunnel",
        port: int | None = None,
        workers: int = 2,
        accounts: bool = True,
        state: Path | None = None,
        key_file: Path | None = None,
        triton_address: str | None = None,
        sidecar_settings: Mapping[str, Any] | None = None,
        envoy_settings: Mapping[str, Any] | None = None,
        triton_traces: str | None = None,
        progress: Progress = lambda message: None,
    ) -> None:
        self.run_dir = run_dir
        self.models = models
        self.native_models = native_models
        self._upstreams = upstreams
        self.wire: Wire = wire
        self.port = port or free_port()
        self.workers = workers
        self._accounts = accounts
        self._state = state or run_dir / "state"
        self._key_file = key_file or run_dir / "key.json"
        self.api_key = ""
        """The key of the first organization, which has all scopes; there is one once the sidecar has started."""
        self.project_key = ""
        """A key of a project of that organization, for the bureau surface."""
        self._given_triton = triton_address
        self._triton_ports: triton.Ports | None = None
        self._sidecar_settings = sidecar_settings
        self._envoy_settings = envoy_settings or {}
        self._triton_traces = triton_traces
        self._progress = progress
        self._sockets = socket_directory(run_dir)
        self.url = f"http://127.0.0.1:{self.port}/v1/infer"
        """The base URL for an SDK, on the node surface."""
        self.bureau_url = f"http://127.0.0.1:{self.port}/v1"
        """The same on the bureau surface."""
        self.admin = f"127.0.0.1:{free_port()}"
        """The address of the admin interface."""
        self.usage_feed = f"127.0.0.1:{free_port()}"
        """The address of the usage feed."""
        self.access_log = run_dir / "access.log"
        """Envoy's, one JSON object per line."""
        self.scripted_events = run_dir / "scripted.jsonl"
        """What the scripted model saw and did, a line each."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all parts and wait until a real request through Envoy is answered.

        Raises:
            StackError: a part could not start, ended, or the request got no answer.
        """
        self.run_dir.mkdir(parents=True, exist_ok=True)
        if self._given_triton is None:
            self.start_triton()
        for upstream in self._own_upstreams:
            upstream.wait_ready()
        self.start_sidecar()
        self.start_envoy()
        self._progress("Asking the model")
        self.wait_until_answering()

    def start_triton(self) -> None:
        """Start Triton and wait until it is ready."""
        self._progress("Starting Triton")
        names = dict.fromkeys(model.triton_model for model in self.models)
        self.triton = triton.start(
            TRITON_VENV,
            self.run_dir / "triton",
            list(names),
            ports=self._triton_ports,
            log=self.run_dir / "triton.log",
            tokenizer=TOKENIZER,
            event_log=self.scripted_events,
            traces=self._triton_traces,
        )
        self._triton_ports = self.triton.ports

    def start_sidecar(self) -> None:
        """Start the supervisor and wait until its workers are ready."""
        self._progress("Starting the sidecar")
        accounts = {
            "store": {"state": str(self._state)},
            "usage_feed": {"address": self.usage_feed},
            "stored": {"master_key": str(_key_file(self._key_file.with_name("master.key"), 32))},
        }
        given = dict(self._sidecar_settings or {})
        settings = {
            "sealing_key": str(_key_file(self._key_file.with_name("sealing.key"), 64)),
            "admin": {"address": self.admin, "playground": f"http://127.0.0.1:{self.port}"},
            **(accounts if self._accounts else {"accounts": False}),
            **given,
            "surfaces": {"bureau": {}, **given.get("surfaces", {})},
            "upstreams": [upstream.section for upstream in self._upstreams],
        }
        models = list(map(with_catalog_entry, self._all_models))
        triton = {"address": self.triton_address}
        if self.wire == "origin":
            triton["upstream"] = f"unix:{self._sockets / EGRESS_SOCKET}"
        configuration = configure(models, triton, self.workers, self._sockets, self.run_dir, settings)
        if self._accounts:
            self.api_key = first_key(configuration, self._key_file)
            self.project_key = project_key(configuration, self._key_file.with_name("project-key.json"))
        self.sidecar = Sidecar(configuration, worker_sockets(self._sockets, self.workers), self.run_dir)
        self.sidecar.wait_ready()

    def start_envoy(self) -> None:
        """Start Envoy and wait until it listens."""
        self._progress("Starting Envoy")
        settings = settings_of(load(self.sidecar.config), self.port, self.access_log, self.wire)
        self.envoy = Envoy(replace(settings, **self._envoy_settings), self.run_dir)
        self.envoy.wait_ready()

    @property
    def triton_address(self) -> str:
        """``host:port`` of Triton's gRPC service."""
        if self._given_triton is not None:
            return self._given_triton
        assert self.triton is not None, "Triton starts first"
        return f"127.0.0.1:{self.triton.grpc_port}"

    def processes(self) -> list[Process]:
        """The leading process of every part that was started here."""
        parts = [getattr(self, name, None) for name in ("triton", "sidecar", "envoy")]
        return [part.process for part in (*parts, *self._own_upstreams) if part is not None]

    def pids(self) -> dict[str, int | list[int] | None]:
        """Process ids by part; ``triton`` is ``None`` where it was not started here."""
        return {
            "envoy": self.envoy.process.pid,
            "supervisor": self.sidecar.process.pid,
            "workers": self.sidecar.worker_pids(),
            "triton": self.triton.pid if self.triton else None,
        }

    def check_alive(self) -> None:
        """Look whether all parts still run.

        Raises:
            StackError: a part has ended; the message names it and quotes the end of its log.
        """
        for process in self.processes():
            if not process.running():
                raise StackError(f"{process.name} has ended. The end of its log:\n{process.log_tail()}")

    def dead_models(self) -> list[str]:
        """The models that clients can no longer use, because the process behind them has ended."""
        dead = self.triton.dead_models() if self.triton is not None else []
        return [model.name for model in self.models if model.triton_model in dead]

    def wait_until_answering(self, seconds: float = 60) -> None:
        """Send real requests to the first model until one is answered.

        Raises:
            StackError: a part has ended, or none was answered in time; the message has the last answer.
        """
        model = self.models[0]
        deadline = time.monotonic() + seconds
        while (failure := self._ask(model)) is not None:
            self.check_alive()
            if model.name in self.dead_models():
                raise StackError(f"The process of {model.name} has ended; {self.run_dir / 'triton.log'} may say why.")
            if time.monotonic() > deadline:
                raise StackError(f"{model.name} did not answer within {seconds:.0f} s: {failure}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End all parts and everything they started; the sidecar first, whose streams need the others to finish."""
        for name in ("sidecar", "envoy"):
            if (part := getattr(self, name, None)) is not None:
                part.process.stop()
        if self.triton is not None:
            self.triton.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def names(self) -> list[str]:
        """What the node surface calls the models, the native ones last."""
        return [model.name for model in self._all_models]

    def slugs(self) -> list[str]:
        """What the bureau surface calls the same."""
        return [with_catalog_entry(model).settings["catalog"]["slug"] for model in self._all_models]

    @property
    def _own_upstreams(self) -> list[Upstream]:
        """Those that are processes."""
        return [upstream for upstream in self._upstreams if isinstance(upstream, Upstream)]

    @property
    def _all_models(self) -> list[Model | NativeModel]:
        return [*self.models, *self.native_models]

    def _ask(self, model: Model) -> str | None:
        """Send one short request; says what went wrong, or ``None`` where the model answered."""
        body = {"model": model.name, "input": "Hello", "max_output_tokens": 1}
        request = urllib.request.Request(
            f"{self.url}/responses",
            json.dumps(body).encode(),
            {"authorization": f"Bearer {self.api_key}", "content-type": "application/json"},
        )
        try:
            with DIRECT.open(request, timeout=60) as answer:
                json.load(answer)
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode(errors='replace').strip()}"
        except (OSError, ValueError) as error:
            return str(error)
        return None


def _key_file(path: Path, length: int) -> Path:
    """A file of so many random bytes, made where it is not there: what was sealed is read by the next stack too."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(b64encode(os.urandom(length)).decode())
    return path
