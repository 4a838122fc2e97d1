"""The keys in the catalog follow their files, and stay out of everything that is written down."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from sidecar.config.upstreams import NativeModelConfig, RouteConfig, UpstreamConfig
from sidecar.exchange.catalog import Catalog, ServedNative
from sidecar.extproc.sessions import Sessions
from sidecar.server import upstream_keys
from sidecar.server.models import load_models
from sidecar.server.upstream_keys import UpstreamKeys
from sidecar.surfaces import SURFACES


def upstreams(key: Path) -> tuple[UpstreamConfig, ...]:
    return (
        UpstreamConfig(name="a", url="https://a.example.com/v1", key_file=key),
        UpstreamConfig(name="b", url="https://b.example.com/v1"),
    )


def native(key: Path) -> Catalog:
    routes = tuple(RouteConfig(upstream=name, model="m") for name in ("a", "b"))
    settings = NativeModelConfig(name="m", context_length=9, routes=routes)
    return Catalog("n", 15, load_models([settings], upstreams(key)))


def sent(catalog: Catalog) -> list[str]:
    """What each route of the one model sends."""
    (model,) = catalog
    assert isinstance(model, ServedNative)
    return [route.authorization for route in model.routes]


async def test_a_key_is_read_again_and_one_that_is_gone_stays_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upstream_keys, "_LOOK_SECONDS", 0.001)
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("sk-1\n")
    keys = UpstreamKeys(upstreams(key))
    sessions = Sessions(keys.read_into(native(key)), SURFACES, {}, ())
    assert sent(sessions.catalog) == ["Bearer sk-1", ""]
    keeping = asyncio.create_task(keys.keep(sessions))
    key.write_text("sk-2\n")
    async with asyncio.timeout(10):
        while sent(sessions.catalog) != ["Bearer sk-2", ""]:
            await asyncio.sleep(0.001)
    key.unlink()
    async with asyncio.timeout(10):
        while not caplog.records:
            await asyncio.sleep(0.001)
    keeping.cancel()
    assert sent(sessions.catalog) == ["Bearer sk-2", ""]
    assert len(caplog.records) == 1
    assert "sk-" not in caplog.text + repr(list(sessions.catalog))


async def test_without_key_files_nothing_goes_on_in_the_background(tmp_path: Path) -> None:
    keys = UpstreamKeys(upstreams(tmp_path / "none")[1:])
    await asyncio.wait_for(keys.keep(Sessions(native(tmp_path / "none"), SURFACES, {}, ())), 10)


def test_a_catalog_is_the_same_while_no_key_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("sk-1")
    keys, catalog = UpstreamKeys(upstreams(key)), native(key)
    known = keys.read_into(catalog)
    assert known is not catalog
    assert keys.read_into(known) is known
