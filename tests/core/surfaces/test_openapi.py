"""The OpenAPI document of a surface: it is one, and it says what the surface does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sidecar.admission.buckets import Bucket
from sidecar.admission.standing import Standing
from sidecar.config.model import RequestLimits
from sidecar.exchange.events import UpstreamEnd
from sidecar.responses.errors import CODES, ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces import SURFACES
from sidecar.surfaces.openapi import document
from sidecar.surfaces.openapi.shorthand import own_references, references
from sidecar.surfaces.surface import Surface
from tests.core import kit
from tests.core.sse import parse
from tests.core.surfaces.openapi_structure import STRUCTURE
from tests.core.surfaces.test_node_requests import ACCEPTED
from tests.core.surfaces.toy import TOY

NODE = SURFACES["node"]
DOCUMENT = document(NODE)
SCHEMAS = DOCUMENT["components"]["schemas"]
REQUEST = SCHEMAS["CreateResponse"]["properties"]
CREATED = DOCUMENT["paths"]["/v1/infer/responses"]["post"]["responses"]["200"]
EVENT_EXAMPLES = CREATED["content"]["text/event-stream"]["examples"]

BUREAU = SURFACES["bureau"]

each = pytest.mark.parametrize("surface", [NODE, BUREAU, TOY], ids=["node", "bureau", "toy"])


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in ``value``."""
    if isinstance(value, dict):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(member)


def misfits(described: dict[str, Any], schema: dict[str, Any], value: Any) -> list[Any]:
    return list(Draft202012Validator({**schema, "components": described["components"]}).iter_errors(value))


@each
def test_it_has_the_structure_of_openapi(surface: Surface) -> None:
    assert list(Draft202012Validator(STRUCTURE).iter_errors(document(surface))) == []
    operations = [call["operationId"] for item in document(surface)["paths"].values() for call in item.values()]
    assert len(operations) == len(set(operations))


@each
def test_every_schema_is_one(surface: Surface) -> None:
    for schema in document(surface)["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@each
def test_every_reference_leads_somewhere(surface: Surface) -> None:
    described = document(surface)
    found = [
        reference
        for node in nodes(described)
        for reference in [node.get("$ref"), *node.get("mapping", {}).values()]
        if isinstance(reference, str)
    ]
    assert found
    for reference in found:
        target = described
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


@each
def test_every_schema_is_used(surface: Surface) -> None:
    described = document(surface)
    schemas = described["components"]["schemas"]
    assert references(described["paths"], schemas) == schemas.keys()


@each
def test_every_example_fits_its_schema(surface: Surface) -> None:
    described = document(surface)
    media = [node for node in nodes(described["paths"]) if "examples" in node]
    assert media
    for node in media:
        for example in node["examples"].values():
            assert misfits(described, node["schema"], example["value"]) == []


@each
def test_a_path_s_parameters_are_described(surface: Surface) -> None:
    for path, item in document(surface)["paths"].items():
        for call in item.values():
            in_path = [parameter["name"] for parameter in call.get("parameters", ()) if parameter["in"] == "path"]
            assert in_path == ["id"] * ("{id}" in path)


def test_it_has_every_endpoint_and_every_parameter() -> None:
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == {(endpoint.method, endpoint.path) for endpoint in NODE.endpoints}
    rows = {row.name for row in NODE.parameters if row.top_level}
    assert REQUEST.keys() == rows >= ResponsesRequest.model_fields.keys()


def test_a_parameter_has_one_row() -> None:
    names = [row.name for row in NODE.parameters]
    assert len(names) == len(set(names))


def takes_null(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type", ())
    return (
        not schema.keys() - {"description"}
        or "null" in ([kinds] if isinstance(kinds, str) else kinds)
        or None in schema.get("enum", ())
        or any(takes_null(option) for option in schema.get("anyOf", ()))
    )


@pytest.mark.parametrize("name", ["CreateResponse", *sorted(references(SCHEMAS["CreateResponse"], SCHEMAS))])
def test_null_is_taken_for_all_that_a_request_may_leave_out(name: str) -> None:
    schema = SCHEMAS[name]
    optional = schema["properties"].keys() - set(schema.get("required", ()))
    assert [member for member in sorted(optional) if not takes_null(schema["properties"][member])] == []


@pytest.mark.parametrize("parameters", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_accepted_fits_the_schema(parameters: dict[str, Any]) -> None:
    body = {"model": "m", "input": "hi"} | {name: value for name, value in parameters.items() if value is not None}
    assert misfits(DOCUMENT, SCHEMAS["CreateResponse"], body) == []


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "prompt", "top_logprobs", "max_tool_calls"])
def test_what_is_refused_is_not_offered(name: str) -> None:
    assert REQUEST[name]["type"] == "null"


OF_ANY_ITEM = {"type", "id", "status"}


@pytest.mark.parametrize(
    ("schema", "members"),
    [
        ("InputMessage", OF_ANY_ITEM | {"role", "content", "phase"}),
        ("AssistantMessage", OF_ANY_ITEM | {"role", "content", "phase"}),
        ("FunctionCall", OF_ANY_ITEM | {"call_id", "name", "arguments", "caller", "namespace", "async"}),
        ("FunctionCallOutput", OF_ANY_ITEM | {"call_id", "output", "caller", "name", "namespace"}),
        ("ReasoningItem", OF_ANY_ITEM | {"summary", "content", "encrypted_content"}),
        ("InputImage", {"type", "image_url", "file_id", "detail"}),
        ("OutputText", {"type", "text", "annotations", "logprobs"}),
        ("NamedFunction", {"type", "name"}),
    ],
)
def test_all_members_of_items_and_parts_are_described(schema: str, members: set[str]) -> None:
    assert SCHEMAS[schema]["properties"].keys() == members


def test_the_statuses_of_all_codes_are_described_where_they_can_happen() -> None:
    described = {
        status for item in DOCUMENT["paths"].values() for call in item.values() for status in call["responses"]
    }
    assert described == {"200"} | {str(CODES[code].status) for code in NODE.codes}


def test_only_the_document_itself_needs_no_key() -> None:
    calls = {path: call for path, item in DOCUMENT["paths"].items() for call in item.values()}
    assert [path for path, call in calls.items() if call.get("security") == []] == ["/v1/infer/openapi.json"]
    create = calls["/v1/infer/responses"]
    assert create["security"] == [{"key": ["infer:run"]}, {"session": ["infer:run"]}]


LIMITS = Standing(Bucket(1, 0, 0), Bucket(1, 0, 0)).headers()
LIMITED = ApiError("rate_limited", "", headers=LIMITS)
NOT_TO_BE_RETRIED = ApiError("infer_backend_unavailable", "", retry=False)


@pytest.mark.parametrize(
    "error",
    [*(ApiError(code, "") for code in NODE.codes if code != "not_found"), NOT_TO_BE_RETRIED],
    ids=lambda error: f"{error.code} {error.retry}",
)
def test_the_headers_of_an_error_are_described(error: ApiError) -> None:
    answers = [
        answer["headers"].keys()
        for item in DOCUMENT["paths"].values()
        for call in item.values()
        for answer in call["responses"].values()
        if error.code in answer["content"]["application/json"].get("examples", ())
    ]
    sent = {"x-request-id", *NODE.error_reply(error, "r-1").headers} - {"content-type"}
    assert answers
    assert all(sent <= headers for headers in answers)
    assert all(("allow" in headers) == (error.code == "method_not_allowed") for headers in answers)


def test_refusals_tell_of_limits() -> None:
    described = DOCUMENT["paths"]["/v1/infer/responses"]["post"]["responses"]["429"]["headers"]
    assert NODE.error_reply(LIMITED, "r-1").headers.keys() - {"content-type"} <= described.keys()


def test_the_headers_of_a_response_are_described() -> None:
    assert CREATED["headers"].keys() == {"x-request-id", "server-timing", *LIMITS}


def test_the_limits_are_described() -> None:
    limits = RequestLimits()
    words = SCHEMAS["CreateResponse"]["description"]
    for limit in (limits.max_request_bytes, limits.max_items, limits.max_tools, limits.max_images):
        assert str(limit) in words
    schema = SCHEMAS["FunctionTool"]["properties"]["parameters"]["anyOf"][0]
    assert "65536 bytes" in schema["description"]
    assert "32 levels" in schema["description"]


def test_every_event_type_has_an_example() -> None:
    # The answer of the example is whole.
    described = SCHEMAS["StreamEvent"]["discriminator"]["mapping"].keys()
    assert EVENT_EXAMPLES.keys() | {"response.incomplete"} == described


@pytest.mark.parametrize("end", [kit.whole_end(), kit.broken_end()], ids=["whole", "broken"])
def test_the_events_that_are_sent_fit_their_schemas(end: UpstreamEnd) -> None:
    actions = kit.play([kit.text("Hi"), kit.final() if end.whole else b""], end, stream=True)[1]
    events = parse(kit.sent(actions))
    assert events
    for event in events:
        assert misfits(DOCUMENT, SCHEMAS["StreamEvent"], event.data) == []


def test_the_response_that_is_sent_fits_its_schema() -> None:
    actions = kit.play([kit.text("Hi"), kit.final()])[1]
    assert misfits(DOCUMENT, SCHEMAS["Response"], json.loads(kit.sent(actions))) == []


def test_the_error_that_is_sent_fits_its_schema() -> None:
    body = json.loads(kit.reply(kit.play([], kit.broken_end())[1]).body)
    assert misfits(DOCUMENT, SCHEMAS["Error"], body) == []


@pytest.mark.parametrize("member", ["type", "sequence_number", "item_id", "delta", "logprobs"])
def test_an_event_without_a_member_does_not_fit(member: str) -> None:
    event = json.loads(EVENT_EXAMPLES["response.output_text.delta"]["value"]["data"])
    del event[member]
    assert misfits(DOCUMENT, SCHEMAS["StreamEvent"], event)


def test_references_are_found_through_others() -> None:
    schemas: dict[str, Any] = {"a": {"items": {"$ref": "#/components/schemas/b"}}, "b": {}, "c": {}}
    assert references([{"$ref": "#/components/schemas/a"}, {"$ref": "#/components/headers/c"}], schemas) == {"a", "b"}
    assert list(own_references({"$ref": "#/components/schemas/a"})) == ["a"]
