"""What a real Prometheus sees of a node: every panel of the dashboard and every alert has data after a short load."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from stack.local import SCRIPTED_BY_CONTRACT, LocalStack
from stack.prometheus import ALERTS, Prometheus, check_config
from tests.core.repository.test_monitoring import ALERTS as RULES
from tests.core.repository.test_monitoring import PANELS
from tests.e2e.client import Client, eventually, script

SHAPE: dict[str, Any] = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
TOOL = {"type": "function", "name": "shell", "parameters": {"type": "object"}}
SLIP = '<tool_call>{"name": "shell", "arguments": {"cmd": "ls",}}</tool_call>'


@pytest.fixture(scope="module")
def prometheus(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), stack.admin)
    yield server
    server.process.stop()


def panel(expression: str) -> str:
    """A panel's query as Grafana sends it."""
    return expression.replace("$instance", ".*").replace("$__rate_interval", "1m")


def watched(expression: str) -> str:
    """What an alert looks at, without its threshold."""
    return re.split(r" (?:==|>) ", expression)[0]


QUERIES = {target["expr"]: panel(target["expr"]) for shown in PANELS for target in shown["targets"]} | {
    rule["expr"]: watched(rule["expr"]) for rule in RULES
}


async def load(stack: LocalStack) -> None:
    """Requests of all kinds that a node counts, faults among them."""
    ensemble = SCRIPTED_BY_CONTRACT["ensemble"].name
    async with Client(stack) as client:
        assert (await client.ask(script("some", " words"))).status_code == 200
        await client.events(script("some", " words"))
        await client.events(script("no", " JSON", text={"format": SHAPE}))
        await client.events(script(SLIP, tools=[TOOL]))
        await client.events(script({"split_ids": "👩‍🚀"}, model=ensemble))
        assert (await client.ask(script({"error": "broken"}))).status_code >= 500
        assert (await client.ask({"model": "nobody-knows-it", "input": "hi"})).status_code == 404
    # Somebody who is no Envoy.
    with socket.socket(socket.AF_UNIX) as worker:
        worker.connect(str(stack.sidecar.worker_sockets[0]))
        worker.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(64))
        while worker.recv(4096):
            pass


def test_the_configuration_and_its_rules_are_valid() -> None:
    # Those of docker-compose.yml.
    check_config(ALERTS.with_name("prometheus.yml"))


async def test_every_panel_and_every_alert_has_data(stack: LocalStack, prometheus: Prometheus) -> None:
    def without_data() -> set[str]:
        with suppress(OSError):
            return {query for query, sent in QUERIES.items() if not prometheus.values(sent)}
        return set(QUERIES)

    await load(stack)
    # A rate is that of what has been seen before.
    await eventually(lambda: len(without_data()) < len(QUERIES), 60)
    async with asyncio.timeout(60):
        while missing := without_data():
            await load(stack)
    assert not missing
    rules = await eventually(lambda: all_evaluated(prometheus.rules()), 30)
    assert [rule["name"] for rule in rules] == [rule["alert"] for rule in RULES]
    assert {rule["name"]: rule.get("lastError", "") for rule in rules if rule["health"] != "ok"} == {}


def all_evaluated(rules: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    return rules if rules and all(rule["health"] != "unknown" for rule in rules) else None
