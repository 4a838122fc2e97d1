"""The documents made from the code: kept up to date, and saying what the code does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.cli.docs import generated_docs
from sidecar.responses.errors import CODES
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces import SURFACES
from sidecar.surfaces.openapi import document
from stack.paths import ROOT

NODE = SURFACES["node"]
DOCUMENT = document(NODE)
SCHEMAS = DOCUMENT["components"]["schemas"]
REQUEST = SCHEMAS["CreateResponse"]["properties"]


@pytest.mark.parametrize("name", ["errors.md", "openapi.json", "parameters.md"])
def test_the_kept_documents_are_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == generated_docs()[name], (
        "stale: .venv/bin/responses-sidecar docs docs"
    )


def test_the_document_has_every_endpoint_and_every_parameter() -> None:
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == {(endpoint.method, endpoint.path) for endpoint in NODE.endpoints}
    assert (
        REQUEST.keys() == {row.name for row in NODE.parameters if row.top_level} >= ResponsesRequest.model_fields.keys()
    )


def test_a_parameter_has_one_row() -> None:
    names = [row.name for row in NODE.parameters]
    assert len(names) == len(set(names))


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_schema_is_there_and_used() -> None:
    used = {reference.removeprefix("#/components/schemas/") for reference in references(DOCUMENT)}
    assert used == SCHEMAS.keys()


def takes_null(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type", ())
    return (
        not schema.keys() - {"description"}
        or "null" in ([kinds] if isinstance(kinds, str) else kinds)
        or None in schema.get("enum", ())
        or any(takes_null(option) for option in schema.get("anyOf", ()))
    )


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in ("Response", "Error")])
def test_null_is_taken_for_all_that_is_not_required(name: str) -> None:
    schema = SCHEMAS[name]
    if name.startswith("Output") and name != "OutputText":
        assert schema["required"]
        return
    optional = schema["properties"].keys() - set(schema.get("required", ()))
    assert [member for member in sorted(optional) if not takes_null(schema["properties"][member])] == []


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "prompt", "top_logprobs", "max_tool_calls"])
def test_what_is_refused_is_not_offered(name: str) -> None:
    assert REQUEST[name]["type"] == "null"


def test_the_statuses_of_all_codes_are_described_where_they_can_happen() -> None:
    described = {
        status for item in DOCUMENT["paths"].values() for call in item.values() for status in call["responses"]
    }
    assert described == {"200"} | {str(kind.status) for kind in CODES.values()} - {"405"}


def test_only_the_document_itself_needs_no_key() -> None:
    calls = {path: call for path, item in DOCUMENT["paths"].items() for call in item.values()}
    assert [path for path, call in calls.items() if call.get("security") == []] == ["/v1/infer/openapi.json"]
    assert DOCUMENT["security"] == [{"key": []}]


def test_the_document_is_json_and_always_the_same() -> None:
    again = generated_docs()["openapi.json"]
    assert json.loads(again) == DOCUMENT
    assert generated_docs()["openapi.json"] == again
