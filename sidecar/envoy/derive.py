"""Envoy's settings from the sidecar's configuration: what that allows, Envoy does not cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

from sidecar.config.model import AnyModelConfig
from sidecar.config.models import Config, ModelConfig
from sidecar.config.telemetry import OtlpConfig
from sidecar.config.upstreams import NativeModelConfig
from sidecar.envoy.settings import EnvoySettings, Traces, Wire
from sidecar.exchange.asks import Ask

# Between timeouts of which the shorter is to end a stream.
_MARGIN_SECONDS = 60


def settings_of(
    config: Config, port: int, access_log: Path, wire: Wire = "tunnel", triton: Sequence[tuple[str, int]] = ()
) -> EnvoySettings:
    """The settings that fit ``config``; no value is stricter than Envoy's own default for the same.

    ``triton`` are the hosts and ports of gRPC that requests are spread over, by default the one of the configuration.
    """
    egress = _patience(config, ModelConfig, EnvoySettings.egress_idle_timeout)
    native = _patience(config, NativeModelConfig, EnvoySettings.native_idle_timeout)
    silent = [egress, native if config.upstreams else 0, ceil(config.keep_alive), ceil(Ask.seconds)]
    largest = max(model.limits.max_request_bytes for model in config.models)
    return EnvoySettings(
        port=port,
        sockets=config.sockets,
        worker_sockets=[config.socket(index) for index in range(config.workers)],
        triton=triton or _triton_of(config),
        log_path=access_log,
        wire=wire,
        accounts=config.accounts,
        trusted=config.identity.trusted,
        surfaces=("node",) if config.surfaces.bureau is None else ("node", "bureau"),
        max_request_bytes=max(EnvoySettings.max_request_bytes, 2 * largest),
        client_stall_timeout=min([EnvoySettings.client_stall_timeout, *(m.token_timeout / 2 for m in config.models)]),
        egress_idle_timeout=egress,
        native_idle_timeout=native,
        ingress_idle_timeout=max(silent) + _MARGIN_SECONDS,
        upstreams=config.upstreams,
        traces=_traces_of(config.telemetry.otlp),
    )


def _patience(config: Config, kind: type[AnyModelConfig], least: int) -> int:
    """Seconds of silence for which Envoy waits for models of one kind: longer than the sidecar, which says why."""
    models: Iterable[AnyModelConfig] = (model for model in config.models if isinstance(model, kind))
    waits = [max(model.first_token_timeout, model.token_timeout) for model in models]
    return max([least, *(ceil(seconds) + _MARGIN_SECONDS for seconds in waits)])


def _traces_of(otlp: OtlpConfig) -> Traces | None:
    if otlp.endpoint is None or not otlp.envoy:
        return None
    url = urlsplit(otlp.endpoint)
    assert url.hostname is not None, "the endpoint has been checked"
    return Traces(otlp.endpoint, url.hostname, url.port or 80, otlp.share)


def _triton_of(config: Config) -> Sequence[tuple[str, int]]:
    if config.triton.address is None:
        return ()
    host, _, port = config.triton.address.rpartition(":")
    return ((host, int(port)),)
