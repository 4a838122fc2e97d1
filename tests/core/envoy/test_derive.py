"""What Envoy is allowed follows from what the sidecar's configuration allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar.config.models import Config
from sidecar.envoy.derive import settings_of
from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings

MODEL = {"name": "m", "triton_model": "m", "tokenizer": "/t", "context_length": 2048}
NATIVE = {"name": "n", "routes": [{"upstream": "far", "model": "n"}], "context_length": 2048}
FAR = {"name": "far", "url": "https://api.example.com/v1"}


def config(**members: Any) -> Config:
    given = {"node": "n1", "workers": 3, "sockets": "/run/responses", "models": [MODEL]}
    return Config.model_validate({**given, "triton": {"address": "gpu-1:8001"}, **members})


def settings(**members: Any) -> EnvoySettings:
    return settings_of(config(**members), 8080, Path("/dev/stdout"))


def test_by_default_they_are_envoy_s_own_defaults() -> None:
    found = settings()
    assert (found.triton, found.surfaces, found.accounts) == ((("gpu-1", 8001),), ("node",), True)
    assert [path.name for path in found.worker_sockets] == ["worker-0.sock", "worker-1.sock", "worker-2.sock"]
    for name in ("egress_idle_timeout", "ingress_idle_timeout", "client_stall_timeout", "max_request_bytes"):
        assert getattr(found, name) == getattr(EnvoySettings, name), name


@pytest.mark.parametrize("timer", ["first_token_timeout", "token_timeout"])
def test_envoy_waits_longer_for_triton_than_the_sidecar_and_longer_still_for_the_sidecar(timer: str) -> None:
    found = settings(models=[MODEL, {**MODEL, "name": "slow", timer: 1000.5}])
    assert 1000.5 < found.egress_idle_timeout < found.ingress_idle_timeout


def test_an_upstream_is_waited_for_longer_than_a_request_may_take() -> None:
    found = settings(upstreams=[FAR], models=[MODEL, {**NATIVE, "first_token_timeout": 900}])
    assert 900 < found.native_idle_timeout < found.ingress_idle_timeout
    assert found.egress_idle_timeout == EnvoySettings.egress_idle_timeout


def test_comments_that_come_late_end_no_stream() -> None:
    assert settings(keep_alive=1800).ingress_idle_timeout > 1800


def test_a_client_that_reads_nothing_has_gone_before_the_model_counts_as_silent() -> None:
    assert settings(models=[{**MODEL, "token_timeout": 5}]).client_stall_timeout < 5


def test_the_sidecar_itself_refuses_what_is_too_large() -> None:
    allowed = 64 * 1024 * 1024
    found = settings(models=[{**MODEL, "limits": {"max_request_bytes": allowed}}])
    assert found.max_request_bytes > allowed


def test_without_a_triton_its_cluster_is_empty() -> None:
    found = settings(triton={}, upstreams=[FAR], models=[NATIVE])
    clusters = yaml.safe_load(render(found))["static_resources"]["clusters"]
    (triton,) = [cluster for cluster in clusters if cluster["name"] == "triton"]
    assert not triton["load_assignment"]["endpoints"][0]["lb_endpoints"]
