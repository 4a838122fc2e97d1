"""The checks of ``responses-sidecar check``: each says in one line what holds or what is wrong."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from sidecar.backends.triton.client import discover_all
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.cli.check_places import check_places
from sidecar.cli.check_upstreams import check_upstreams, check_upstreams_envoy
from sidecar.cli.finding import BAD, GOOD, REFUSED, Finding
from sidecar.config.load import ConfigError, read_master_keys, read_store_url
from sidecar.config.models import Config, ModelConfig
from sidecar.exchange.catalog import ServedModel
from sidecar.server.models import load_model
from sidecar.store import StoreUnavailable, connect
from sidecar.store.engine import sqlite_file, without_password
from sidecar.store.schema import schema_version, versions
from sidecar.stored.keys import unopened
from sidecar.stored.master_keys import MasterKeys

_ENVOY_SECONDS = 60
# Time, thread, level, logger and place in Envoy's source.
_ENVOYS_PREFIX = re.compile(r"^(\[[^]]*\]\s*)+(error initializing configuration '[^']*': )?")
# The key and the value of gRPC metadata that chooses the wire.
_ORIGIN = re.compile(r"""x-responses-wire["']?,?\s+["']?value["']?:\s+["']?origin\b""")


def run_checks(config: Config, envoy_config: Path | None, say: Callable[[str], None]) -> int:
    """Run all checks, say each result as it comes, and return the exit status: the worst of them."""
    status = GOOD
    for finding in _findings(config, envoy_config):
        status = max(status, finding.status)
        say(f"{'FAIL ' if finding.status else 'note ' if finding.note else 'ok   '} {finding.text}")
    return status


def _findings(config: Config, envoy_config: Path | None) -> Iterator[Finding]:
    yield Finding(GOOD, f"configuration: {len(config.models)} model(s), {config.workers} worker(s)")
    yield from check_places(config)
    if config.accounts:
        yield check_store(config)
    if config.stores:
        yield from check_master_keys(config)
    if config.triton.address is not None:
        yield from _check_triton(config.triton.address, config)
    yield from check_upstreams(config)
    if envoy_config is not None:
        valid = _check_envoy(envoy_config)
        yield valid
        if valid.status != GOOD:
            return
        yield from check_upstreams_envoy(config, envoy_config)
        if config.triton.upstream is None and _asks_for_origin(envoy_config):
            yield Finding(REFUSED, f"triton.upstream: {envoy_config} has routes of the wire origin, which calls it")


def _check_triton(address: str, config: Config) -> Iterator[Finding]:
    """The models that Triton serves: their prompts and their contracts."""
    with ThreadPoolExecutor(max_workers=1) as asking:
        # Triton is asked while the tokenizers load.
        of_triton = {index: model for index, model in enumerate(config.models) if isinstance(model, ModelConfig)}
        names = [model.triton_model for model in of_triton.values()]
        contracts = asking.submit(asyncio.run, discover_all(address, names))
        # Kept, so that models of the same files load them once.
        loaded: list[ServedModel] = []
        for index, model in of_triton.items():
            yield from _check_prompt(model, index, loaded)
        for model, contract in zip(of_triton.values(), contracts.result(), strict=True):
            yield _check_contract(address, model, contract)


def check_store(config: Config) -> Finding:
    """Whether the store answers, and whether this release can work with its schema."""
    try:
        url = read_store_url(config.store)
        shown, file, newest = without_password(url), sqlite_file(url), versions()[-1]
        if file is not None and not file.exists():
            return Finding(GOOD, f"store: {shown} is not there yet; serve makes it", note=True)
        found = schema_version(url)
    except (ConfigError, ValueError) as error:
        return Finding(REFUSED, f"store: {error}")
    except StoreUnavailable as error:
        return Finding(BAD, f"store: {shown}: {error}")
    if found is None or found in versions()[:-1]:
        return Finding(GOOD, f"store: {shown} answers, schema {found or 'none'}; serve makes it {newest}", note=True)
    if found != newest:
        return Finding(REFUSED, f"store: {shown}: its schema {found} is later than this release's {newest}")
    return Finding(GOOD, f"store: {shown} answers, schema {found}")


def check_master_keys(config: Config) -> Iterator[Finding]:
    """Whether the master keys can be read, and open all data keys in the store; nothing where it does not answer."""
    try:
        masters, url = MasterKeys(read_master_keys(config.stored)), read_store_url(config.store)
    except ConfigError as error:
        yield Finding(REFUSED, str(error))
        return
    with suppress(StoreUnavailable, ConfigError, ValueError):
        file = sqlite_file(url)
        if (file is not None and not file.exists()) or schema_version(url) != versions()[-1]:
            return
        with connect(url, "read") as connection:
            unknown = unopened(connection, masters)
        for master, number in unknown:
            words = f"stored: {number} data keys are wrapped by the master key {master}, which is not configured"
            yield Finding(BAD, words)
        if not unknown:
            yield Finding(GOOD, "stored: the master keys open all data keys")


def _check_prompt(config: ModelConfig, index: int, loaded: list[ServedModel]) -> Iterator[Finding]:
    try:
        model = load_model(config, index)
    except ConfigError as error:
        yield Finding(REFUSED, f"{config.name}: {error}")
        return
    loaded.append(model)
    limits = f"context {config.context_length} tokens, request {config.limits.max_request_bytes} bytes"
    known = model.renderer.model_max_length
    if known is not None and config.context_length > known:
        words = f"models[{index}].context_length: {config.context_length} is more than the model's {known}"
        yield Finding(BAD, f"{config.name}: {words}")
    else:
        yield Finding(GOOD, f"{config.name}: tokenizer and chat template load; {limits}")
    for note in model.notes:
        yield Finding(GOOD, f"{config.name}: {note}", note=True)


def _check_contract(address: str, model: ModelConfig, contract: Contract | Exception) -> Finding:
    if isinstance(contract, Exception):
        return Finding(BAD, f"{model.name}: {contract}")
    return Finding(GOOD, f"{model.name}: Triton at {address} serves {model.triton_model}, contract {contract.name}")


def _asks_for_origin(path: Path) -> bool:
    """Whether a route of Envoy's configuration, in YAML or JSON, names the wire."""
    return _ORIGIN.search(path.read_text(errors="replace")) is not None


def _check_envoy(path: Path) -> Finding:
    envoy = shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")
    if envoy is None:
        return Finding(BAD, "envoy: no such program to validate the configuration with")
    result = subprocess.run(
        [envoy, "--mode", "validate", "--log-level", "error", "-c", str(path)],
        capture_output=True,
        text=True,
        timeout=_ENVOY_SECONDS,
        check=False,
    )
    if result.returncode:
        *_, reason = (result.stderr.strip() or result.stdout.strip() or "it is refused").splitlines()
        return Finding(BAD, f"envoy: {path}: {_ENVOYS_PREFIX.sub('', reason)}")
    return Finding(GOOD, f"envoy: {path} is valid")
