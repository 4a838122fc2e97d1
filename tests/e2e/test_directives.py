"""Directives behind Envoy: what a command sets holds for the next requests of that level within seconds."""

from __future__ import annotations

import time
from typing import Any

from stack.first_key import command
from stack.local import LocalStack
from tests.e2e.bureau import said
from tests.e2e.test_receipts import create, get, new_key, receipt


def directives(stack: LocalStack, *arguments: str) -> Any:
    return command(stack.sidecar.config, "directives", "set", *arguments)


def test_directives_hold_at_their_level(stack: LocalStack) -> None:
    team = command(stack.sidecar.config, "orgs", "create", "directed")["id"]
    directives(stack, team, "--max-output-tokens", "7")
    directives(stack, team, "--project", "short", "--max-input-tokens", "3")
    directives(stack, team, "--project", "elsewhere", "--excluded-vendors", "local")
    short, elsewhere, free = (new_key(stack, team, project) for project in ("short", "elsewhere", "free"))
    answered = create(stack, free, said("x", max_output_tokens=50))
    assert (answered.status, answered.json()["max_output_tokens"]) == (200, 7)
    for key, param in ((short, "input"), (elsewhere, "model")):
        error = create(stack, key, said("x")).json()["error"]
        assert (error["code"], error["param"]) == ("policy_denied", param)
    (noted,) = get(stack, short, "/v1/requests").json()["data"] or [receipt_of_the_first(stack, short)]
    assert noted["outcome"] == "policy_denied"


def receipt_of_the_first(stack: LocalStack, key: str) -> Any:
    """A refusal is written down after it has been told."""
    deadline = time.monotonic() + 30
    while not (data := get(stack, key, "/v1/requests").json()["data"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return data[0]


def test_an_end_user_s_limit_takes_effect_within_seconds_and_is_nobody_else_s(stack: LocalStack) -> None:
    team = command(stack.sidecar.config, "orgs", "create", "with end users")["id"]
    key = new_key(stack, team, "support")
    assert create(stack, key, said("x"), "ib-user: ada").status == 200
    directives(stack, team, "--user-requests-per-minute", "1")
    deadline = time.monotonic() + 30
    while (reply := create(stack, key, said("x"), "ib-user: ada")).status == 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert (reply.status, reply.json()["error"]["code"]) == (429, "rate_limited")
    assert "1 request per minute allowed to an end user" in reply.json()["error"]["message"]
    assert receipt(stack, key, reply.headers["x-request-id"], "rate_limited")["end_user"] == "ada"
    assert create(stack, key, said("x"), "ib-user: bob").status == 200
