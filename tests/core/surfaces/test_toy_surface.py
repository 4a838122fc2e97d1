"""Adding a surface takes one folder and one line: a toy is one file, and everything of its own shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.cli.docs import parameters_page
from sidecar.exchange.events import RequestComplete, UpstreamBytes
from sidecar.responses.errors import ApiError
from sidecar.responses.items import InputMessage
from sidecar.surfaces import SURFACES
from sidecar.surfaces.endpoints import Operation, Target
from sidecar.surfaces.openapi import document
from tests.core import kit
from tests.core.sse import parse
from tests.core.surfaces.toy import TOY, Note

WITH_TOY = {**SURFACES, "toy": TOY}
JSON_HEADERS = {"content-type": "application/json"}


def accept(**parameters: Any) -> Any:
    return WITH_TOY["toy"].accept(JSON_HEADERS, json.dumps({"model": "m", "input": "hi"} | parameters).encode())


def test_its_items_are_read_and_its_defaults_hold() -> None:
    request = accept(input=[{"type": "note", "note": "n"}, {"role": "user", "content": "hi"}], colour=[1], penalty=0.0)
    assert request.input[0] == Note(type="note", note="n")
    assert isinstance(request.input[1], InputMessage)
    assert request.temperature == 0.5
    assert accept(temperature=1).temperature == 1
    assert accept(reasoning={"effort": "low", "summary": "auto"}).reasoning.effort == "low"


@pytest.mark.parametrize(
    ("parameters", "param", "message"),
    [
        ({"tools": []}, "tools", "tools? Not with toys."),
        ({"prompt_logprobs": 1}, "prompt_logprobs", "prompt_logprobs? Not with toys."),
        ({"top_p": 1}, "top_p", "A toy has no top_p."),
        ({"truncation": "disabled"}, "truncation", "truncation? Not with toys."),
        (
            {"include": ["file_search_call.results", "reasoning.encrypted_content"]},
            "include[1]",
            "reasoning.encrypted_content in include[1]? Not with toys.",
        ),
        ({"reasoning": {"effort": "high"}}, "reasoning.effort", "Think less."),
        ({"penalty": False}, "penalty", "penalty? Not with toys."),
        ({"input": [{"type": "function_call"}]}, "input[0]", "Toys call nobody."),
        (
            {"input": [{"type": "reasoning"}]},
            "input[0]",
            "'input[0]' is an item of type 'reasoning', which is not supported.",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
            "Toys are blind.",
        ),
    ],
)
def test_its_refusals_are_in_its_own_words(parameters: dict[str, Any], param: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        accept(**parameters)
    assert (refused.value.code, refused.value.param, refused.value.message) == ("unsupported_parameter", param, message)


@pytest.mark.parametrize(("path", "id_"), [("/toys/bear/maker?x=1", "bear"), ("/toys/a%2Fb/maker", "a/b")])
def test_an_id_may_stand_inside_a_path(path: str, id_: str) -> None:
    assert TOY.target({":method": "GET", ":path": path}) == Target(Operation.RETRIEVE_MODEL, id_, "infer:read")


@pytest.mark.parametrize("path", ["/toys//maker", "/toys/maker", "/toys/a/b/maker", "/toys/bear/maker/", "/toys/bear"])
def test_an_id_is_one_segment_of_a_path(path: str) -> None:
    with pytest.raises(ApiError) as refused:
        TOY.target({":method": "GET", ":path": path})
    assert refused.value.code == "not_found"


def request(stream: bool = False, **parameters: Any) -> RequestComplete:
    asked = kit.request(stream=stream, **parameters)
    return replace(asked, headers={**asked.headers, ":path": "/toys"})


def test_its_response_and_its_extension_are_sent() -> None:
    exchange = kit.exchange(surface=TOY)
    kit.handle(exchange, request())
    exchange.handle(UpstreamBytes(kit.text("a") + kit.final(), 101.0))
    response = json.loads(kit.sent(exchange.handle(kit.whole_end())))
    assert (response["toy"], response["temperature"], response["made_by"]) == (True, 0.5, "n1")
    assert "b3os" not in response


def test_its_error_body_is_sent() -> None:
    reply = kit.reply(kit.handle(kit.exchange(surface=TOY), request(tools=[])))
    assert json.loads(reply.body)["error"] == {
        "message": "tools? Not with toys.",
        "type": "invalid_request_error",
        "param": "tools",
        "code": "unsupported_parameter",
        "request_id": "r-1",
    }


def test_a_stream_that_fails_has_its_error_members() -> None:
    exchange = kit.exchange(surface=TOY)
    kit.handle(exchange, request(stream=True))
    exchange.handle(UpstreamBytes(kit.text("a"), 101.0))
    event = parse(kit.sent(exchange.handle(kit.broken_end())))[-1]
    assert (event.type, event.data["error"]["request_id"]) == ("error", "r-1")


def test_its_document_is_made_of_its_table() -> None:
    described = document(TOY)
    assert described["info"]["title"] == "Toys"
    assert list(described["paths"]) == ["/toys", "/toys/{id}/maker"]
    schemas = described["components"]["schemas"]
    properties = schemas["CreateResponse"]["properties"]
    assert properties.keys() == {row.name for row in TOY.parameters if row.top_level}
    assert properties["top_p"] == {"type": "null"}
    assert properties["truncation"] == {"enum": ["auto", None]}
    assert properties["temperature"]["default"] == 0.5
    assert properties["colour"] == {"description": "Accepted and ignored. Any."}
    assert schemas["ReasoningSettings"]["properties"]["effort"] == {"enum": ["low", None]}
    assert "Note" in schemas
    assert not schemas.keys() & {"FunctionTool", "FunctionCall", "InputImage", "ModelList"}
    assert (schemas["Response"]["description"], schemas["ErrorDetails"]["description"]) == ("A toy.", "Broken.")
    assert described["paths"]["/toys"]["post"]["responses"].keys() & {"401", "503"} == set()


def test_its_parameters_are_a_page_s_section() -> None:
    page = parameters_page(WITH_TOY)
    assert "## `POST /toys`" in page
    assert "| `temperature` | accepted | `0.5` | How wild. |" in page
    assert "| `top_p` | refused |  |  |" in page
    assert "| `penalty` | accepted without effect if `0` |  |  |" in page
    assert "## `POST /v1/infer/responses`" in page
