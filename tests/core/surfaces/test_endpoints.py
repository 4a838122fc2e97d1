"""What a request is for, by method and path, and the answers that need no model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.exchange.events import RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.surfaces import SURFACES
from sidecar.surfaces.endpoints import Endpoint, Operation, Target, find_target
from tests.core import kit

NODE = SURFACES["node"]


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("POST", "/v1/infer/responses", Target(Operation.CREATE_RESPONSE, "", "infer:run")),
        ("POST", "/v1/infer/responses?stream=true", Target(Operation.CREATE_RESPONSE, "", "infer:run")),
        ("GET", "/v1/infer/models", Target(Operation.LIST_MODELS, "", "infer:read")),
        ("GET", "/v1/infer/models?limit=2", Target(Operation.LIST_MODELS, "", "infer:read")),
        ("GET", "/v1/infer/models/qwen", Target(Operation.RETRIEVE_MODEL, "qwen", "infer:read")),
        ("GET", "/v1/infer/models/b3os/qwen", Target(Operation.RETRIEVE_MODEL, "b3os/qwen", "infer:read")),
        ("GET", "/v1/infer/models/b3os%2Fqwen", Target(Operation.RETRIEVE_MODEL, "b3os/qwen", "infer:read")),
        ("GET", "/v1/infer/models/a%20b?x=/y", Target(Operation.RETRIEVE_MODEL, "a b", "infer:read")),
        ("GET", "/v1/infer/openapi.json", Target(Operation.READ_OPENAPI, "", None)),
    ],
)
def test_method_and_path_tell_what_a_request_is_for(method: str, path: str, target: Target) -> None:
    assert NODE.target({":method": method, ":path": path}) == target


@pytest.mark.parametrize(
    ("method", "path", "code", "allow"),
    [
        ("GET", "/v1/infer/responses", "method_not_allowed", "POST"),
        ("POST", "/v1/infer/models", "method_not_allowed", "GET"),
        ("DELETE", "/v1/infer/models/qwen", "method_not_allowed", "GET"),
        ("POST", "/v1/infer/responses/", "not_found", None),
        ("GET", "/v1/infer/models/", "not_found", None),
        ("GET", "/v1/infer/modelsX", "not_found", None),
        ("GET", "/", "not_found", None),
    ],
)
def test_anything_else_is_refused(method: str, path: str, code: str, allow: str | None) -> None:
    with pytest.raises(ApiError) as refused:
        NODE.target({":method": method, ":path": path})
    reply = refused.value.reply()
    assert (reply.outcome, reply.headers.get("allow")) == (code, allow)


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("POST", "/v1/infer/response", "There is no POST /v1/infer/response; use POST /v1/infer/responses."),
        ("POST", "/v1/responses?x=1", "There is no POST /v1/responses; use POST /v1/infer/responses."),
        (
            "POST",
            "/v1/infer/chat/completions",
            "There is no POST /v1/infer/chat/completions; use POST /v1/infer/responses.",
        ),
        ("GET", "/v1/infer/model", "There is no GET /v1/infer/model; use GET /v1/infer/models."),
        ("GET", "/v1/infer/responses", "GET is not allowed at /v1/infer/responses; use POST."),
        ("PUT", "/v1/infer/models", "PUT is not allowed at /v1/infer/models; use GET."),
    ],
)
def test_a_mistaken_url_is_told_the_right_one(method: str, path: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        NODE.target({":method": method, ":path": path})
    assert refused.value.message == message


def test_a_path_is_shown_short_and_printable() -> None:
    with pytest.raises(ApiError) as refused:
        NODE.target({":method": "GET", ":path": "/\x1b" + "x" * 100_000})
    assert len(refused.value.message) < 150
    assert refused.value.message.isprintable()


def test_a_path_with_several_methods_names_them_all() -> None:
    two = (
        Endpoint("GET", "/a/{id}", Operation.RETRIEVE_MODEL, None),
        Endpoint("POST", "/a/{id}", Operation.LIST_MODELS, None),
    )
    with pytest.raises(ApiError) as refused:
        find_target(two, "PUT", "/a/b")
    assert (refused.value.allow, refused.value.message) == ("GET, POST", "PUT is not allowed at /a/b; use GET or POST.")


def get(path: str, body: bytes = b"") -> tuple[Exchange, Reply]:
    catalog = kit.catalog(kit.model(aliases=("b3os/abc",), created=1_700_000_000), kit.model(name="digits"))
    asked = Exchange(NODE, catalog, (), entropy=bytes(18))
    headers = {":method": "GET", ":path": path}
    commands = asked.handle(RequestComplete(headers, body, len(body), 100.0, 1_800_000_000.0, 100.0))
    return asked, kit.reply(commands)


def model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "n1"}


def test_the_list_of_models_has_openais_shape_and_holds_the_aliases() -> None:
    asked, reply = get("/v1/infer/models")
    data = [model("letters", 1_700_000_000), model("b3os/abc", 1_700_000_000), model("digits", 0)]
    assert json.loads(reply.body) == {"object": "list", "data": data}
    assert (reply.status, reply.headers) == (200, {"content-type": "application/json"})
    assert asked.done
    assert (asked.report.outcome, asked.report.model) == ("ok", None)


@pytest.mark.parametrize("path", ["/v1/infer/models/b3os/abc", "/v1/infer/models/b3os%2Fabc"])
def test_a_model_is_found_by_its_alias(path: str) -> None:
    assert json.loads(get(path, b"ignored")[1].body) == model("b3os/abc", 1_700_000_000)


def test_the_list_tells_what_is_to_be_known_of_a_model() -> None:
    asked = Exchange(NODE, kit.catalog(kit.model(notes=("tools are text",))), (), entropy=bytes(18))
    head = {":method": "GET", ":path": "/v1/infer/models/letters"}
    reply = kit.reply(asked.handle(RequestComplete(head, b"", 0, 100.0, 1_800_000_000.0, 100.0)))
    assert json.loads(reply.body) == model("letters", 0) | {"b3os": {"notes": ["tools are text"]}}


def test_an_unknown_model_is_a_404_that_names_the_parameter() -> None:
    asked, reply = get("/v1/infer/models/gpt-5")
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["param"]) == (404, "model_not_available", "model")
    assert asked.report.outcome == "model_not_available"


def test_a_response_names_the_model_as_it_was_asked_for() -> None:
    served = kit.model(aliases=("b3os/abc",))
    played, commands = kit.play([kit.text("a") + kit.final()], of=kit.exchange(served), model="b3os/abc")
    assert json.loads(kit.sent(commands))["model"] == "b3os/abc"
    assert played.report.model == "letters"


def test_the_openapi_document_is_served() -> None:
    document = json.loads(get("/v1/infer/openapi.json")[1].body)
    assert document["openapi"] == "3.1.0"
