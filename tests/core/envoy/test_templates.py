"""The templates of Envoy's configuration are written to be read, and installed with the package."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings, Wire
from sidecar.responses.caller import CALLER_HEADERS
from sidecar.responses.errors import CODES
from sidecar.surfaces.node import NODE
from stack.envoy import allow_descriptors
from stack.paths import ROOT
from stack.process import StackError

DIRECTORY = ROOT / "sidecar" / "envoy" / "templates"
TEMPLATES = sorted(DIRECTORY.rglob("*.j2"))
PARTS = sorted((DIRECTORY / "parts").glob("*.j2"))
WIRES: list[Wire] = ["tunnel", "direct", "origin"]
_MOST_MEMBERS = 3


def settings(wire: Wire, run_dir: Path) -> EnvoySettings:
    return EnvoySettings(
        port=8080,
        sockets=run_dir,
        worker_sockets=[run_dir / "worker-0.sock", run_dir / "worker-1.sock"],
        triton=[("127.0.0.1", 8001)],
        log_path=run_dir / "access.log",
        wire=wire,
    )


def rendered(wire: Wire, run_dir: Path) -> str:
    return render(settings(wire, run_dir))


def test_standard_output_is_not_opened_as_a_file(tmp_path: Path) -> None:
    assert "access_loggers.file" in rendered("tunnel", tmp_path)
    to_stdout = render(replace(settings("tunnel", tmp_path), log_path=Path("/dev/stdout")))
    assert "access_loggers.stdout" in to_stdout
    assert "access_loggers.file" not in to_stdout


def widest_flow_mapping(text: str) -> int:
    """How many members the largest mapping in braces has."""
    widest, members, depth = 0, 0, 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.MappingStartEvent) and event.flow_style:
            depth += 1
            if depth == 1:
                members = 0
        elif isinstance(event, yaml.MappingEndEvent) and depth:
            depth -= 1
            widest = max(widest, members // 2)
        elif isinstance(event, yaml.ScalarEvent) and depth:
            members += 1
    return widest


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_line_is_longer_than_code_may_be(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_rendered_is_in_block_style(wire: Wire, tmp_path: Path) -> None:
    assert widest_flow_mapping(rendered(wire, tmp_path)) <= _MOST_MEMBERS


def test_a_wide_flow_mapping_would_be_found() -> None:
    assert widest_flow_mapping("a: {b: 1, c: {d: 2, e: 3}, f: 4}\n") > _MOST_MEMBERS


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.name)
def test_a_part_says_what_it_is_for_and_what_it_needs(path: Path) -> None:
    head = re.match(r"\{# (.+?) #\}\n", path.read_text(), re.DOTALL)
    assert head is not None
    assert re.search(r"\bneed", head[1], re.IGNORECASE)


@pytest.mark.parametrize("wire", WIRES)
def test_the_egress_listener_belongs_to_the_wires_that_call_through_it(wire: Wire, tmp_path: Path) -> None:
    resources = yaml.safe_load(rendered(wire, tmp_path))["static_resources"]
    assert ("egress" in [listener["name"] for listener in resources["listeners"]]) is (wire != "direct")
    assert ("egress_tunnel" in [cluster["name"] for cluster in resources["clusters"]]) is (wire == "tunnel")


def test_a_failure_inside_the_node_has_the_status_of_its_code(tmp_path: Path) -> None:
    ingress = yaml.safe_load(rendered("tunnel", tmp_path))["static_resources"]["listeners"][0]
    manager = ingress["filter_chains"][0]["filters"][0]["typed_config"]
    # The first two pass the sidecar's own answers on.
    for mapper in manager["local_reply_config"]["mappers"][2:]:
        code = CODES[mapper["body_format_override"]["json_format"]["error"]["code"]]
        if code.status >= 500:
            compared = mapper["filter"].get("status_code_filter", {}).get("comparison", {"op": None})
            as_it_is = compared["value"]["default_value"] if compared["op"] == "EQ" else None
            assert mapper.get("status_code", as_it_is) == code.status


@pytest.mark.parametrize("wire", WIRES)
def test_whoever_needs_a_scope_is_asked_who_it_is(wire: Wire, tmp_path: Path) -> None:
    ingress = yaml.safe_load(rendered(wire, tmp_path))["static_resources"]["listeners"][0]
    manager = ingress["filter_chains"][0]["filters"][0]["typed_config"]
    (host,) = manager["route_config"]["virtual_hosts"]
    marked = host["typed_per_filter_config"]["envoy.filters.http.ext_authz"]["check_settings"]
    assert marked == {"context_extensions": {"surface": "node"}}
    unasked = {
        route["match"].get("path")
        for route in host["routes"]
        if "envoy.filters.http.ext_authz" in route.get("typed_per_filter_config", {})
    }
    assert unasked == {endpoint.path for endpoint in NODE.endpoints if endpoint.scope is None} | {"/healthz"}
    (authz,) = [one["typed_config"] for one in manager["http_filters"] if one["name"].endswith("ext_authz")]
    assert (authz["failure_mode_allow"], authz["status_on_error"]) == (False, {"code": "ServiceUnavailable"})
    (early,) = manager["early_header_mutation_extensions"]
    assert early["typed_config"]["mutations"] == [{"remove": name} for name in CALLER_HEADERS]


def test_the_wheel_brings_the_templates(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for part in ("sidecar", "conformance"):
        shutil.copytree(ROOT / part, source / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert sorted(name for name in names if name.endswith(".j2")) == sorted(
        f"sidecar/envoy/templates/{path.relative_to(DIRECTORY)}" for path in TEMPLATES
    )


@pytest.mark.parametrize("wire", WIRES)
def test_only_the_listener_for_clients_counts_against_their_limit(wire: Wire, tmp_path: Path) -> None:
    config = yaml.safe_load(rendered(wire, tmp_path))
    assert config["admin"]["ignore_global_conn_limit"]
    counted = [
        listener["name"]
        for listener in config["static_resources"]["listeners"]
        if not listener.get("ignore_global_conn_limit")
    ]
    assert counted == ["ingress"]


def test_a_system_that_allows_too_few_open_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_descriptors(soft)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    with pytest.raises(StackError, match="Envoy may need 12800 open files, but the system allows 4096"):
        allow_descriptors(12_800)
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    allow_descriptors(2048)
    allow_descriptors(512)
    assert raised == [(2048, 4096)]
