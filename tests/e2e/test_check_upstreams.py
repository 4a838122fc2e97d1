"""``responses-sidecar check`` of upstreams: what it says of real servers, each with one thing wrong."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from sidecar.cli.check_upstreams import check_upstreams, check_upstreams_envoy
from sidecar.config.load import load
from sidecar.envoy.render import render
from sidecar.envoy.settings import Wire
from stack.local import LocalStack
from stack.native.server import Upstream
from stack.net import free_port
from tests.e2e.test_check import check
from tests.e2e.test_envoy import settings

KEY = "sk-right"
AUTHORITY, OTHER_AUTHORITY = trustme.CA(), trustme.CA()
CERTIFICATES = {
    "right": AUTHORITY.issue_cert("localhost"),
    "stranger": AUTHORITY.issue_cert("other.example"),
    "foreign": OTHER_AUTHORITY.issue_cert("localhost"),
}


def configuration(directory: Path, model: str = "only", **upstream: Any) -> Path:
    """One upstream, named ``u``, and a model on it."""
    path = directory / "sidecar.yaml"
    route = {"upstream": "u", "model": model}
    content = {
        "node": "n",
        "sockets": "/run/r",
        "upstreams": [{"name": "u", **upstream}],
        "models": [{"name": "m", "context_length": 9, "routes": [route]}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def said(path: Path) -> list[str]:
    """What is said of the upstreams, with FAIL before what is wrong."""
    return [f"{'FAIL ' if finding.status else ''}{finding.text}" for finding in check_upstreams(load(path))]


def tls(certificate: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATES[certificate].configure_cert(context)
    return context


@pytest.mark.parametrize(
    ("certificate", "change", "words"),
    [
        (None, {}, "upstream u: localhost:{port} answers"),
        ("right", {"ca_file": "ca.pem"}, "upstream u: localhost:{port} answers over TLS"),
        ("right", {}, "FAIL upstream u: localhost:{port} shows a wrong certificate (unable to get local issuer"),
        ("stranger", {"ca_file": "ca.pem"}, "FAIL upstream u: localhost:{port} shows a wrong certificate (Hostname"),
        ("foreign", {"ca_file": "ca.pem"}, "FAIL upstream u: localhost:{port} shows a wrong certificate (unable to"),
        ("right", {"ca_file": "none.pem"}, "FAIL upstream u: ca_file: "),
        ("right", {"url": "http://localhost:{port}/v1"}, "FAIL upstream u: localhost:{port} "),
        (None, {"key_file": "wrong"}, "FAIL upstream u: localhost:{port} refuses its key (401)"),
        (None, {"key_file": None}, "FAIL upstream u: localhost:{port} refuses a request without a key: key_file is"),
        (None, {"model": "gone"}, "FAIL upstream u: it lists no model gone"),
        (None, {"url": "http://localhost:{port}/other"}, "upstream u: GET http://localhost:{port}/other/models lists"),
        (None, {"url": "http://localhost:{closed}/v1"}, "FAIL upstream u: localhost:{closed} cannot be reached ("),
        (None, {"url": "https://none.invalid/v1"}, "FAIL upstream u: none.invalid has no address"),
    ],
)
async def test_an_upstream_is_told_as_it_is(
    tmp_path: Path, certificate: str | None, change: dict[str, Any], words: str
) -> None:
    ports = {"port": free_port(), "closed": free_port()}
    for name, key in {"right": KEY, "wrong": "sk-wrong"}.items():
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(key)
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    given = {"url": f"http{'s' if certificate else ''}://localhost:{{port}}/v1", "key_file": "right", **change}
    given["url"] = given["url"].format(**ports)
    server = await Upstream(KEY, tmp_path / "log").serve(ports["port"], tls(certificate))
    async with server:
        findings = await asyncio.to_thread(said, configuration(tmp_path, **given))
    assert findings[-1].startswith(words.format(**ports)), findings
    assert "sk-" not in "".join(findings)


@pytest.mark.parametrize(
    ("wire", "known", "words"),
    [
        ("tunnel", True, []),
        ("tunnel", False, ["has no native_u", "has no native.u"]),
        ("direct", True, ["has routes of the wire direct", "has no native_u", "has no native.u"]),
        ("origin", True, ["has routes of the wire origin", "has no native_u", "has no native.u"]),
    ],
)
def test_envoy_s_configuration_must_know_the_upstreams(
    tmp_path: Path, wire: Wire, known: bool, words: list[str]
) -> None:
    config = load(configuration(tmp_path, url="http://localhost:1/v1"))
    envoy = tmp_path / "envoy.yaml"
    other = [upstream.model_copy(update={"name": "u-2"}) for upstream in config.upstreams]
    envoy.write_text(render(replace(settings(tmp_path, wire), upstreams=config.upstreams if known else other)))
    findings = [finding.text for finding in check_upstreams_envoy(config, envoy)]
    assert len(findings) == len(words)
    assert all(expected in found for expected, found in zip(words, findings, strict=True))


def test_a_running_stack_s_upstreams_pass(stack: LocalStack, tmp_path: Path) -> None:
    content = yaml.safe_load(stack.sidecar.config.read_text())
    # One upstream of the stack is not there, as tests want it.
    content["upstreams"] = [upstream for upstream in content["upstreams"] if upstream["name"] != "gone"]
    known = [model for model in content["models"] if model["name"] in ("native-scripted", "smollm2-135m-native")]
    content["models"] = known
    path = tmp_path / "sidecar.yaml"
    path.write_text(json.dumps(content))
    result = check(path, "--envoy-config", str(stack.run_dir / "envoy.yaml"))
    assert result.exit_code == 0, result.output
    for name in ("scripted", "llama"):
        assert f"ok    upstream {name}: 127.0.0.1:" in result.output
