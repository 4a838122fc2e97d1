"""What is written for others' Envoys: what their control planes can read, and where each part goes."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from envoy.config.cluster.v3.cluster_pb2 import Cluster
from envoy.config.listener.v3.listener_components_pb2 import Filter
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.config.route.v3.route_components_pb2 import Route
from envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2 import HttpFilter
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from tests.core.envoy.crds import DEFINITIONS
from tests.core.envoy.outlines import FORMS, FULL, KEPT, invoke, outline, rendered
from tests.core.envoy.test_derive import MODEL


@pytest.mark.parametrize("form", FORMS)
def test_the_parts_are_these_and_go_there(form: str) -> None:
    assert outline(form, rendered(form, *FORMS[form])) == (KEPT / f"{form}.txt").read_text()


@pytest.mark.parametrize("form", ["istio", "envoy-gateway"])
def test_the_resources_are_what_their_definitions_allow(form: str) -> None:
    for document in rendered(form, *FORMS[form]):
        jsonschema.Draft202012Validator(DEFINITIONS[document["kind"]]).validate(document)


def test_a_definition_finds_what_is_not_there() -> None:
    (document,) = rendered("istio")
    document["spec"]["configPatches"][0]["match"]["listeners"] = {}
    with pytest.raises(jsonschema.ValidationError, match="listeners"):
        jsonschema.Draft202012Validator(DEFINITIONS["EnvoyFilter"]).validate(document)


_BY_PLACE: dict[str, type[Message]] = {
    "CLUSTER": Cluster,
    "LISTENER": Listener,
    "NETWORK_FILTER": Filter,
    "HTTP_FILTER": HttpFilter,
    "HTTP_ROUTE": Route,
}


def test_istio_can_read_every_patch() -> None:
    (document,) = rendered("istio")
    for patch in document["spec"]["configPatches"]:
        read(patch["patch"]["value"], _BY_PLACE[patch["applyTo"]])


def test_envoy_gateway_can_read_every_resource_and_filter() -> None:
    documents = {document["kind"]: document for document in rendered("envoy-gateway", *FORMS["envoy-gateway"])}
    for patch in documents["EnvoyPatchPolicy"]["spec"]["jsonPatches"]:
        operation = patch["operation"]
        if not operation.keys() & {"path", "jsonPath"}:
            read(operation["value"], Cluster if patch["type"].endswith("Cluster") else Listener)
        elif "http_filters" in operation.get("jsonPath", ""):
            read(operation["value"], HttpFilter)


def read(value: dict[str, Any], kind: type[Message]) -> None:
    """Read ``value`` as the control plane does: members and types that do not exist are refused."""
    for name in set(_types(value)):
        package = importlib.import_module(name.rpartition(".")[0])
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    ParseDict(value, kind())


def _types(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "@type" in value:
            yield value["@type"].removeprefix("type.googleapis.com/")
        for member in value.values():
            yield from _types(member)
    elif isinstance(value, list):
        for member in value:
            yield from _types(member)


def test_nothing_of_an_operator_s_is_touched_but_on_our_routes() -> None:
    (parts,) = rendered("existing")
    first, *others = parts["http_filters"]
    assert all(one["disabled"] for one in others)
    assert first["typed_config"]["mutations"] == {"response_mutations": [{"remove": "x-local-reply"}]}
    assert all(route["name"].startswith("responses-") for route in parts["routes"])
    assert all(route["match"].keys() & {"path", "path_separated_prefix", "prefix"} for route in parts["routes"])
    assert not [route for route in parts["routes"] if route["match"].get("prefix") in ("/", "/v1/")]
    ours = "xds.route_name.startsWith('responses-"
    for mapper in parts["http_connection_manager"]["local_reply_config"]["mappers"][1:]:
        assert ours in yaml.safe_dump(mapper["filter"], width=1000)


def test_all_but_the_document_is_asked_for_an_identity_that_is_trusted() -> None:
    (parts,) = rendered("existing")
    asked = {
        route["name"]: route["typed_per_filter_config"]["responses.ext_authz"]["check_settings"]["context_extensions"]
        for route in parts["routes"]
        if "responses.ext_authz" in route.get("typed_per_filter_config", {})
    }
    unasked = {route["name"] for route in parts["routes"] if "responses.ext_proc" in str(route)} - asked.keys()
    assert unasked == {"responses-node-openapi", "responses-bureau-openapi"}
    assert all(extensions["trusted"] == "true" for extensions in asked.values())
    (authz,) = [one["typed_config"] for one in parts["http_filters"] if one["name"] == "responses.ext_authz"]
    assert authz["metadata_context_namespaces"] == ["envoy.filters.http.jwt_authn"]
    assert authz["allowed_headers"]["patterns"] == [{"exact": "x-user"}, {"exact": "x-request-id"}]


@pytest.mark.parametrize("form", ["local", "standalone"])
def test_a_node_of_its_own_trusts_nobody_s_finding(form: str, tmp_path: Path) -> None:
    assert "trusted" not in invoke(tmp_path, form).stdout.replace("trusted_ca", "")


def test_without_accounts_nobody_is_asked(tmp_path: Path) -> None:
    config = {key: value for key, value in FULL.items() if key != "identity"} | {"accounts": False}
    assert "responses.ext_authz" not in invoke(tmp_path, "existing", config=config).stdout


def test_a_standalone_node_has_tls_and_all_its_tritons() -> None:
    files = ["--tls-certificate", "tls/chain.pem", "--tls-key", "tls/key.pem"]
    tritons = ["--triton", "10.0.0.1:8001", "--triton", "[fd00::2]:8002"]
    (config,) = rendered("standalone", "--listen", "[::]:8443", *files, *tritons)
    listener = config["static_resources"]["listeners"][0]
    assert listener["address"]["socket_address"] == {"address": "::", "port_value": 8443}
    tls = listener["filter_chains"][0]["transport_socket"]["typed_config"]["common_tls_context"]
    chain, key = (Path(tls["tls_certificates"][0][name]["filename"]) for name in ("certificate_chain", "private_key"))
    assert (chain, key) == (Path("tls/chain.pem").resolve(), Path("tls/key.pem").resolve())
    (triton,) = [one for one in config["static_resources"]["clusters"] if one["name"] == "triton"]
    endpoints = triton["load_assignment"]["endpoints"][0]["lb_endpoints"]
    places = [one["endpoint"]["address"]["socket_address"] for one in endpoints]
    assert places == [{"address": "10.0.0.1", "port_value": 8001}, {"address": "fd00::2", "port_value": 8002}]


NO_UPSTREAMS = {**FULL, "upstreams": [], "models": [MODEL]}


@pytest.mark.parametrize(
    ("form", "arguments", "words"),
    [
        ("standalone", ["--listen", "0.0.0.0:8443"], "others can connect to"),
        ("local", ["--listen", "0.0.0.0:8443"], "others can connect to"),
        ("local", ["--tls-certificate", "c", "--tls-key", "k"], "the form local has no TLS"),
        ("standalone", ["--tls-certificate", "c"], "go together"),
        ("standalone", ["--listen", "example.com:80"], "is no IP address"),
        ("standalone", ["--listen", "8080"], "8080 is not of the form host:port"),
        ("standalone", ["--triton", "gpu-1:99999"], "is not of the form host:port"),
        ("existing", ["--wire", "direct"], "only the tunnel calls upstreams"),
        ("istio", ["--label", "app"], "is not of the form key=value"),
        ("istio", ["--namespace", "Bad Ns"], "Bad Ns is no name of a namespace"),
        ("envoy-gateway", ["--host", "bad host"], "bad host is no name of a host"),
        ("envoy-gateway", [], "needs it"),
    ],
)
def test_what_cannot_be_is_said(form: str, arguments: list[str], words: str, tmp_path: Path) -> None:
    result = invoke(tmp_path, form, *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


def test_the_origin_wire_needs_somebody_to_call(tmp_path: Path) -> None:
    config = {**NO_UPSTREAMS, "triton": {"address": "127.0.0.1:8001"}}
    assert invoke(tmp_path, "local", "--wire", "origin", config=NO_UPSTREAMS).exit_code == 0
    assert invoke(tmp_path, "local", "--wire", "origin", config=config).exit_code == 2


def test_a_wrong_configuration_is_told_by_its_key(tmp_path: Path) -> None:
    result = invoke(tmp_path, "local", config={"node": "n"})
    assert (result.exit_code, "sockets: this key is needed" in result.output) == (2, True)


def test_http_where_others_connect_must_be_wanted(tmp_path: Path) -> None:
    assert invoke(tmp_path, "standalone", "--listen", "0.0.0.0:8080", "--allow-http").exit_code == 0


def test_files_that_only_envoy_may_read_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "envoy's"
    file.touch()
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(os.fsdecode(path)) != file)
    arguments = [word for name in ("access-log", "tls-certificate", "tls-key") for word in (f"--{name}", str(file))]
    assert invoke(tmp_path, "standalone", *arguments).exit_code == 0
