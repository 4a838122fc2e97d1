"""The checks of ``responses-sidecar check``: each says in one line what holds or what is wrong."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sidecar.backends.triton.client import TritonUnreachableError, discover
from sidecar.backends.triton.discovery import UnknownContractError
from sidecar.config.models import Config, ModelConfig
from sidecar.server.models import load_model

_ENVOY_SECONDS = 60


class Finding(NamedTuple):
    """One check's result in words; a ``note`` is good, and worth knowing."""

    good: bool
    text: str
    note: bool = False


def run_checks(config: Config, envoy_config: Path | None, say: Callable[[str], None]) -> bool:
    """Run all checks, say each result as it comes, and return whether all are good."""
    all_good = True
    for finding in _findings(config, envoy_config):
        all_good = all_good and finding.good
        say(f"{('note ' if finding.note else 'ok   ') if finding.good else 'FAIL '} {finding.text}")
    return all_good


def _findings(config: Config, envoy_config: Path | None) -> Iterator[Finding]:
    yield Finding(True, f"configuration: {len(config.models)} model(s), {config.workers} worker(s)")
    for model in config.models:
        yield from _check_prompt(model)
        yield asyncio.run(_check_triton(config.triton.address, model))
    if envoy_config is not None:
        yield _check_envoy(envoy_config)


def _check_prompt(config: ModelConfig) -> Iterator[Finding]:
    try:
        model = load_model(config)
    except (OSError, ValueError) as error:
        yield Finding(False, f"{config.name}: tokenizer {config.tokenizer}: {error}")
        return
    limits = f"context {config.context_length} tokens, request {config.limits.max_request_bytes} bytes"
    known = model.renderer.model_max_length
    if known is not None and config.context_length > known:
        yield Finding(False, f"{config.name}: context_length {config.context_length} is more than the model's {known}")
    else:
        yield Finding(True, f"{config.name}: tokenizer and chat template load; {limits}")
    for note in model.notes:
        yield Finding(True, f"{config.name}: {note}", note=True)


async def _check_triton(address: str, model: ModelConfig) -> Finding:
    try:
        contract = await discover(address, model.triton_model)
    except (TritonUnreachableError, UnknownContractError) as error:
        return Finding(False, f"{model.name}: {error}")
    return Finding(True, f"{model.name}: Triton at {address} serves {model.triton_model}, contract {contract.name}")


def _check_envoy(path: Path) -> Finding:
    envoy = shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")
    if envoy is None:
        return Finding(False, "envoy: no such program to validate the configuration with")
    result = subprocess.run(
        [envoy, "--mode", "validate", "--log-level", "error", "-c", str(path)],
        capture_output=True,
        text=True,
        timeout=_ENVOY_SECONDS,
        check=False,
    )
    if result.returncode:
        reason = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
        return Finding(False, f"envoy: {path}: {' '.join(reason)}")
    return Finding(True, f"envoy: {path} is valid")
