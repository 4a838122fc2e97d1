"""The documents made from the code are kept up to date."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from sidecar.cli.configuration_page import ENVOY_LIMITS, configuration_page
from sidecar.cli.docs import generated_docs
from sidecar.config.admission import PriceConfig
from sidecar.config.model import RequestLimits
from sidecar.config.models import Config, ImageLimits, ModelConfig
from sidecar.config.upstreams import NativeModelConfig, RouteConfig
from sidecar.envoy.settings import EnvoySettings
from sidecar.exchange.asks import Ask
from sidecar.surfaces import SURFACES
from sidecar.surfaces.openapi import document
from stack.paths import ROOT


@pytest.mark.parametrize("name", generated_docs())
def test_the_kept_documents_are_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == generated_docs()[name], (
        "stale: .venv/bin/responses-sidecar docs docs"
    )


def test_the_document_is_json_and_always_the_same() -> None:
    again = generated_docs()["openapi.json"]
    assert json.loads(again) == document(SURFACES["node"])
    assert generated_docs()["openapi.json"] == again


def test_the_configurations_page_tells_what_envoy_really_allows() -> None:
    defaults = {field.name: field.default for field in fields(EnvoySettings)}
    assert {limit.variable: limit.value for limit in ENVOY_LIMITS} == {
        name: value for name, value in defaults.items() if name.endswith(("_timeout", "_bytes", "_connections"))
    }


def test_what_the_configuration_allows_by_default_envoy_allows() -> None:
    envoy = {limit.variable: limit.value for limit in ENVOY_LIMITS}
    model = ModelConfig(name="m", triton_model="m", tokenizer=ROOT, context_length=2)
    node = Config(node="n", sockets=ROOT, triton={"address": "h:1"}, models=[model])  # type: ignore[arg-type]
    assert envoy["max_request_bytes"] > model.limits.max_request_bytes
    assert envoy["egress_idle_timeout"] > max(model.first_token_timeout, model.token_timeout)
    assert envoy["ingress_idle_timeout"] > max(envoy["egress_idle_timeout"], node.keep_alive, Ask.seconds)
    assert envoy["native_idle_timeout"] > max(600, model.first_token_timeout, model.token_timeout)
    assert envoy["client_stall_timeout"] < model.token_timeout
    assert ImageLimits().timeout < Ask.seconds


def test_the_configurations_page_has_every_key_with_its_meaning() -> None:
    rows = [line.split(" | ") for line in configuration_page().splitlines() if line.startswith("| `models[].")]
    # Of the members, three are sections: limits and prices, and the routes of those that Triton does not serve.
    inner = sum(len(section.model_fields) for section in (RequestLimits, PriceConfig, RouteConfig))
    assert len(rows) == len({*ModelConfig.model_fields, *NativeModelConfig.model_fields}) - 3 + inner
    assert all(len(row) == 4 and all(row) for row in rows)
