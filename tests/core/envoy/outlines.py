"""What a form consists of in few lines, as kept beside: each part by its name, and where it goes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from sidecar.cli import app
from tests.core.envoy.test_derive import FAR, MODEL, NATIVE

FULL: dict[str, Any] = {
    "node": "n1",
    "workers": 2,
    "sockets": "/run/responses",
    "triton": {"address": "127.0.0.1:8001", "upstream": "127.0.0.1:8001"},
    "upstreams": [FAR],
    "models": [MODEL, NATIVE],
    "surfaces": {"bureau": {"store": False, "encrypted_reasoning": "off"}},
    "identity": {"trusted": {"organization": {"claim": "org"}, "user": {"header": "x-user"}}},
}
"""A configuration with both surfaces, both kinds of models and authentication of the operator's own."""

KEPT = Path(__file__).parent / "outlines"
FORMS: dict[str, list[str]] = {"existing": [], "egress": [], "istio": [], "envoy-gateway": ["--host", "a.example"]}
"""The forms that have one, and their options."""


def invoke(directory: Path, form: str, *arguments: str, config: dict[str, Any] = FULL) -> Result:
    """The command with a configuration that is written into ``directory``."""
    file = directory / "sidecar.yaml"
    file.write_text(yaml.safe_dump(config))
    return CliRunner().invoke(app, ["envoy", "render", "--config", str(file), "--form", form, *arguments])


@cache
def _printed(form: str, *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        result = invoke(Path(directory), form, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def rendered(form: str, *arguments: str) -> list[Any]:
    """The documents that it prints for ``FULL``."""
    return list(yaml.load_all(_printed(form, *arguments), yaml.CSafeLoader))


def write_outlines() -> None:
    """Keep the outlines of what is rendered now."""
    for form, arguments in FORMS.items():
        (KEPT / f"{form}.txt").write_text(outline(form, rendered(form, *arguments)))


def outline(form: str, documents: list[Any]) -> str:
    """The outline of a rendered form."""
    return "".join(f"{line}\n" for document in documents for line in _OUTLINES[form](document))


def _existing(parts: dict[str, Any]) -> Iterator[str]:
    for member in ("listener", "http_connection_manager"):
        yield from (f"{member}: {name}" for name in parts[member])
    for member in ("http_filters", "routes", "listeners", "clusters", "egress_clusters"):
        yield from (f"{member}: {one['name']}" for one in parts[member])


def _egress(config: dict[str, Any]) -> Iterator[str]:
    for member in ("listeners", "clusters"):
        yield from (f"{member}: {one['name']}" for one in config["static_resources"][member])


def _istio(document: dict[str, Any]) -> Iterator[str]:
    yield document["kind"]
    for one in document["spec"]["configPatches"]:
        value = one["patch"]["value"]
        yield f"{one['applyTo']} {one['patch']['operation']} {value.get('name') or ' '.join(value)}"


def _envoy_gateway(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['kind']} {document['metadata']['name']}"
    for rule in document["spec"].get("rules", ()):
        for match in rule["matches"]:
            yield f"  {match['path']['type']} {match['path']['value']}"
    for patch in document["spec"].get("jsonPatches", ()):
        operation = patch["operation"]
        place = f"{operation.get('jsonPath', '')} {operation.get('path', '')}".strip()
        yield f"  {operation['op']} {patch['type'].rpartition('.')[2]} {patch['name']} {place}".rstrip()


_OUTLINES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "existing": _existing,
    "egress": _egress,
    "istio": _istio,
    "envoy-gateway": _envoy_gateway,
}
