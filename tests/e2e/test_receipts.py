"""Receipts behind Envoy: a project's requests, what became of them and what they cost, and nobody else's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from openai import OpenAI

from stack.first_key import command
from stack.local import LocalStack
from tests.e2e.bureau import said
from tests.e2e.ledger import LocalLedger
from tests.e2e.raw_http import Reply, exchange, request

# The CPU model, whose tokens are real.
MODEL = "local/smollm2-135m"


@pytest.fixture(scope="module")
def key(stack: LocalStack) -> str:
    """That of a project that nobody else uses."""
    return new_key(stack, "local", "receipts")


def new_key(stack: LocalStack, organization: str, project: str) -> str:
    made = command(
        stack.sidecar.config, "keys", "create", organization, "--project", project, "--environment", "production"
    )
    return str(made["secret"])


def create(stack: LocalStack, key: str, body: dict[str, Any], *headers: str) -> Reply:
    lines = ["Content-Type: application/json", *headers]
    return exchange(
        stack.port, [request("POST", "/v1/responses", key=key, headers=lines, body=json.dumps(body).encode())]
    )


def get(stack: LocalStack, key: str, path: str) -> Reply:
    return exchange(stack.port, [request("GET", path, key=key)])


def until(look: Callable[[], Any]) -> Any:
    """What ``look`` finds once it finds something."""
    deadline = time.monotonic() + 30
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def receipt(stack: LocalStack, key: str, request_id: str, outcome: str) -> Any:
    """The receipt of a request, once it tells of ``outcome``."""

    def look() -> Any:
        reply = get(stack, key, f"/v1/requests/{request_id}")
        return reply.json() if reply.status == 200 and reply.json()["outcome"] == outcome else None

    return until(look)


def test_a_receipt_and_the_ledger_agree(stack: LocalStack, key: str) -> None:
    headers = ["ib-user: ada", "ib-tags: a,b", "ib-session: talk", "X-Client-Request-ID: mine"]
    reply = create(stack, key, {"model": MODEL, "input": "Hello", "max_output_tokens": 3}, *headers)
    request_id, response = reply.headers["x-request-id"], reply.json()
    told = receipt(stack, key, request_id, "incomplete")
    assert (told["id"], told["response_id"], told["model"]) == (request_id, response["id"], MODEL)
    assert (told["end_user"], told["tags"], told["session"], told["client_request_id"]) == (
        "ada",
        ["a", "b"],
        "talk",
        "mine",
    )
    assert (told["project"], told["environment"], told["stream"]) == ("receipts", "production", False)
    assert told["attempts"] == [{"route": "triton", "outcome": "incomplete", "status": None, "ms": None}]
    usage = response["usage"]
    assert (told["usage"]["input_tokens"], told["usage"]["output_tokens"]) == (usage["input_tokens"], 3)
    (record,) = LocalLedger(stack).rows("SELECT * FROM usage_records WHERE request_id = :id", id=request_id)
    assert int(Decimal(told["charge"]).scaleb(9)) == record["price"]
    assert told["price"] == (json.loads(record["price_terms"]) or None)
    assert told["timings"]["first_token_ms"] == record["first_token_ms"] <= told["timings"]["total_ms"]
    assert (record["session"], record["credential_id"]) == ("talk", told["key"])


def test_a_request_under_way_is_in_progress(stack: LocalStack, key: str) -> None:
    body = said("One", {"sleep": 1.0}, " two", stream=True)
    with (
        OpenAI(base_url=stack.bureau_url, api_key=key, max_retries=0) as client,
        client.responses.with_streaming_response.create(**body) as stream,
    ):
        request_id = stream.headers["x-request-id"]
        running = get(stack, key, f"/v1/requests/{request_id}").json()
        assert (running["outcome"], running["usage"], running["charge"]) == ("in_progress", None, None)
        stream.read()
    assert receipt(stack, key, request_id, "completed")["stream"] is True


def test_the_log_is_paged_and_another_project_sees_none_of_it(stack: LocalStack) -> None:
    mine, theirs = new_key(stack, "local", "paged"), new_key(stack, "local", "other")
    ids = [create(stack, mine, said("x")).headers["x-request-id"] for _ in range(3)]
    first = get(stack, mine, "/v1/requests?limit=2").json()
    assert ([one["id"] for one in first["data"]], first["has_more"]) == (ids[:0:-1], True)
    second = get(stack, mine, f"/v1/requests?limit=2&after={first['last_id']}").json()
    assert ([one["id"] for one in second["data"]], second["has_more"]) == (ids[:1], False)
    assert get(stack, theirs, "/v1/requests").json()["data"] == []
    hidden, unknown = (get(stack, theirs, f"/v1/requests/{id}") for id in (ids[0], "none"))
    assert (hidden.status, hidden.json()["error"]["code"]) == (404, "not_found")
    assert unknown.status == 404
    assert hidden.json()["error"]["message"].replace(ids[0], "none") == unknown.json()["error"]["message"]


def test_what_is_refused_by_a_limit_stands_in_the_log(stack: LocalStack) -> None:
    config = stack.sidecar.config
    team = command(config, "orgs", "create", "refused receipts")["id"]
    command(config, "orgs", "set-limits", team, "--requests-per-minute", "0")
    key = new_key(stack, team, "support")
    reply = create(stack, key, said("x"), "ib-tags: a")
    assert reply.status == 429
    told = receipt(stack, key, reply.headers["x-request-id"], "rate_limited")
    assert (told["charge"], told["tags"], told["attempts"], told["response_id"]) == ("0.00", ["a"], [], None)
    assert [one["id"] for one in get(stack, key, "/v1/requests").json()["data"]] == [told["id"]]


def test_only_who_has_a_key_may_look_and_nobody_may_write(stack: LocalStack, key: str) -> None:
    for path in ("/v1/requests", "/v1/requests/x"):
        assert exchange(stack.port, [request("GET", path)]).status == 401
        reply = exchange(stack.port, [request("POST", path, key=key, headers=[], body=b"")])
        assert (reply.status, reply.headers["allow"]) == (405, "GET")
    assert get(stack, key, "/v1/requests?limit=0").json()["error"]["param"] == "limit"
