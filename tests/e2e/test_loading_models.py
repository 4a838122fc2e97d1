"""A model that loads harms no other model of the same Triton."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stack.local import SCRIPTED, SCRIPTED_BY_CONTRACT, LocalStack
from tests.e2e.client import Client, error_of, eventually, script

OTHER = SCRIPTED_BY_CONTRACT["vllm"]


class Repository:
    """The models of a running Triton, over its HTTP endpoint."""

    def __init__(self, port: int) -> None:
        # Triton gives each connection to one of a few threads, and a load blocks its thread: whatever asks meanwhile
        # takes a new connection each time, and another if that one waits behind the load.
        limits = httpx2.Limits(max_keepalive_connections=0)
        base_url = f"http://127.0.0.1:{port}/v2"
        self._http = httpx2.Client(base_url=base_url, timeout=1, limits=limits, trust_env=False)

    def server_ready(self) -> bool:
        return self._asked("GET", "/health/ready").status_code == 200

    def config(self, model: str) -> dict[str, Any]:
        found: dict[str, Any] = self._asked("GET", f"/models/{model}/config").json()
        return found

    def load(self, model: str, config: dict[str, Any]) -> None:
        """Returns when it is loaded."""
        body = {"parameters": {"config": json.dumps(config)}}
        self._http.post(f"/repository/models/{model}/load", json=body, timeout=60).raise_for_status()

    def unload(self, model: str) -> None:
        self._http.post(f"/repository/models/{model}/unload", json={}, timeout=60).raise_for_status()

    def state(self, model: str) -> str | None:
        index = self._asked("POST", "/repository/index").json()
        state: str | None = next((entry.get("state") for entry in index if entry["name"] == model), None)
        return state

    def _asked(self, method: str, path: str) -> httpx2.Response:
        for _ in range(10):
            with suppress(httpx2.ReadTimeout):
                return self._http.request(method, path)
        raise TimeoutError(path)


@pytest.fixture
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with LocalStack(tmp_path_factory.mktemp("loading"), models=[SCRIPTED, OTHER]) as stack:
        yield stack


async def test_a_model_that_loads_harms_no_other(stack: LocalStack, tmp_path: Path) -> None:
    assert stack.triton is not None
    repository = Repository(stack.triton.http_port)
    gate = tmp_path / "load"
    config = repository.config(OTHER.triton_model)
    config["parameters"] = {"load_when": {"string_value": str(gate)}}

    def checks() -> int:
        return stack.envoy.stats("cluster.triton.health_check.attempt")["cluster.triton.health_check.attempt"]

    with ThreadPoolExecutor(1) as loader:
        repository.unload(OTHER.triton_model)
        await eventually(lambda: repository.state(OTHER.triton_model) == "UNAVAILABLE")
        loading = loader.submit(repository.load, OTHER.triton_model, config)
        try:
            await eventually(lambda: repository.state(OTHER.triton_model) == "LOADING")
            assert not repository.server_ready()
            before = checks()
            await eventually(lambda: checks() > before + 2)
            async with Client(stack) as client:
                assert (await client.ask(script("ok"))).status_code == 200
                refused = await client.ask({**script("ok"), "model": OTHER.name})
                assert (refused.status_code, error_of(refused)["code"]) == (503, "infer_backend_unavailable")
                gate.touch()
                loading.result()
                async with asyncio.timeout(30):
                    while (await client.ask({**script("ok"), "model": OTHER.name})).status_code != 200:
                        await asyncio.sleep(0.1)
        finally:
            gate.touch()
