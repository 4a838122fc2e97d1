"""Upstreams and the models that they serve: what is right is taken, what is wrong is named by its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar.config.load import ConfigError, load
from sidecar.config.upstreams import NativeModelConfig, UpstreamConfig

UPSTREAM = {"name": "openai", "url": "https://api.example.com/v1/"}
ROUTE = {"upstream": "openai", "model": "gpt-5-mini"}
MODEL = {"name": "gpt-5-mini", "context_length": 400_000, "routes": [ROUTE]}
TRITON_MODEL = {"name": "m", "triton_model": "m", "tokenizer": "m", "context_length": 2048}


def write(directory: Path, **changes: Any) -> Path:
    path = directory / "sidecar.yaml"
    content = {"node": "n1", "sockets": "/run/r", "triton": {"address": "127.0.0.1:8001"}}
    path.write_text(yaml.safe_dump({**content, "upstreams": [UPSTREAM], "models": [MODEL], **changes}))
    return path


def secret(path: Path, content: str | bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_model_has_routes_in_the_place_of_a_triton_model(tmp_path: Path) -> None:
    secret(tmp_path / "key", "sk-1\n")
    upstream = {**UPSTREAM, "key_file": "key", "ca_file": "ca.pem"}
    config = load(write(tmp_path, upstreams=[upstream], models=[TRITON_MODEL, MODEL]))
    assert config.upstreams[0].key_file == tmp_path / "key"
    assert config.upstreams[0].ca_file == tmp_path / "ca.pem"
    model = config.models[1]
    assert isinstance(model, NativeModelConfig)
    assert model.routes[0].model == "gpt-5-mini"


def test_without_a_model_of_triton_s_there_need_be_no_triton(tmp_path: Path) -> None:
    assert load(write(tmp_path, triton={})).triton.address is None
    with pytest.raises(ConfigError, match=r"triton.address is needed: models\[1\] is Triton's"):
        load(write(tmp_path, triton={}, models=[MODEL, TRITON_MODEL]))


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://api.example.com/v1", (True, "api.example.com", 443, "api.example.com", "/v1")),
        ("https://api.example.com:8443/v1/", (True, "api.example.com", 8443, "api.example.com:8443", "/v1")),
        ("http://127.0.0.1:8000", (False, "127.0.0.1", 8000, "127.0.0.1:8000", "")),
        ("http://[::1]:8000/openai/v1", (False, "::1", 8000, "[::1]:8000", "/openai/v1")),
        ("http://10.1.2.3/v1", (False, "10.1.2.3", 80, "10.1.2.3", "/v1")),
        ("http://localhost:1/v1", (False, "localhost", 1, "localhost:1", "/v1")),
    ],
)
def test_a_url_tells_how_to_get_there(url: str, parts: tuple[bool, str, int, str, str]) -> None:
    upstream = UpstreamConfig(name="u", url=url)
    assert (upstream.tls, upstream.host, upstream.port, upstream.authority, upstream.path) == parts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Open_AI"}, "upstreams[0].name: String should match pattern"),
        ({"url": "api.example.com/v1"}, "upstreams[0]: url must be of the form https://host/path"),
        ({"url": "ftp://api.example.com"}, "upstreams[0]: url must be of the form https://host/path"),
        ({"url": "https://api.example.com:0/v1"}, "upstreams[0]: the port of url must be from 1 to 65535"),
        ({"url": "https://api.example.com:x/v1"}, "upstreams[0]: the port of url must be from 1 to 65535"),
        ({"url": "https://key@api.example.com/v1"}, "upstreams[0]: url has no user, query or fragment"),
        ({"url": "https://api.example.com/v1?"}, "upstreams[0]: url has no user, query or fragment"),
        ({"url": "http://api.example.com/v1"}, "upstreams[0]: url is plain http to a host that is not of this network"),
        ({"url": "http://8.8.8.8/v1"}, "upstreams[0]: url is plain http to a host that is not of this network"),
        ({"url": "http://10.0.0.1/v1", "ca_file": "ca"}, "upstreams[0]: ca_file is set, which plain http has no use"),
        ({"key_file": "missing"}, "/missing cannot be read (No such file or directory)"),
        ({"key_file": "empty"}, "/empty must hold one key, of printable ASCII without spaces"),
        ({"key_file": "two"}, "/two must hold one key, of printable ASCII without spaces"),
        ({"key_file": "binary"}, "/binary cannot be read (it is not UTF-8)"),
        ({"key_file": "open"}, "/open has the mode 0644: others may read or change it; chmod 600"),
        ({"key": "sk-1"}, "upstreams[0].key: there is no such key"),
    ],
)
def test_a_mistake_in_an_upstream_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    for name, content in {"empty": b"\n", "two": b"sk-1\nsk-2\n", "binary": b"\xff\xfe"}.items():
        secret(tmp_path / name, content)
    secret(tmp_path / "open", "sk-1")
    (tmp_path / "open").chmod(0o644)
    path = write(tmp_path, upstreams=[{**UPSTREAM, **change}])
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{path}: upstreams[0]")
    assert "sk-" not in str(refused.value)


def test_http_to_anywhere_must_be_said(tmp_path: Path) -> None:
    upstream = {**UPSTREAM, "url": "http://api.example.com/v1", "allow_http": True}
    assert not load(write(tmp_path, upstreams=[upstream])).upstreams[0].tls


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"upstreams": []}, "models[0].routes[0].upstream: there is no openai among the upstreams"),
        ({"upstreams": [UPSTREAM, UPSTREAM]}, "openai is the name of more than one of the upstreams"),
        ({"models": [{**MODEL, "routes": []}]}, "models[0].routes: at least 1 is needed"),
        ({"models": [{**MODEL, "routes": [ROUTE, ROUTE]}]}, "models[0]: two of the routes are the same"),
        ({"models": [{**MODEL, "triton_model": "m"}]}, "models[0]: triton_model is of a model that Triton serves"),
        ({"models": [{**MODEL, "tool_format": "auto"}]}, "models[0]: tool_format is of a model that Triton serves"),
        ({"models": [{**MODEL, "routes": [{**ROUTE, "features": ["audio"]}]}]}, "models[0].routes[0].features[0]: "),
        ({"models": [{**MODEL, "routes": [{"upstream": "openai"}]}]}, "models[0].routes[0].model: this key is needed"),
        ({"models": [{"name": "m", "context_length": 9}]}, "models[0].triton_model: this key is needed"),
        ({"models": [MODEL, {**TRITON_MODEL, "name": "gpt-5-mini"}]}, "is the name or alias of more than one model"),
    ],
)
def test_a_mistake_in_a_model_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(write(tmp_path, **change))
    assert message in str(refused.value)
