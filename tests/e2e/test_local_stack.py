"""What ``./dev up`` runs, on a machine that is not made for it: proxies, dead models, every format of calls."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stack.local import SCRIPTED, SCRIPTED_BY_FORMAT, SMOLLM2, THINKING, LocalStack
from stack.triton import Triton
from tests.e2e.client import Client, eventually, script

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
FUNCTION = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}
ARGUMENTS = {"city": "Paris"}
CALLS = {
    "harmony": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
    "qwen_xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
    "mistral": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "pythonic": '[get_weather(city="Paris")]',
    "llama_json": '{"name": "get_weather", "parameters": {"city": "Paris"}}',
}


@pytest.fixture(scope="module")
def scripted_stack(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    address = f"127.0.0.1:{triton.grpc_port}"
    run_dir = tmp_path_factory.mktemp("scripted")
    models = [SCRIPTED, THINKING, *(SCRIPTED_BY_FORMAT[name] for name in CALLS)]
    with LocalStack(run_dir, models=models, triton_address=address, workers=1) as stack:
        yield stack


async def outputs(stack: LocalStack, model: str, text: str) -> list[dict[str, Any]]:
    async with Client(stack) as client:
        answer = await client.ask({**script(text), "model": model, "tools": [FUNCTION]})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["output"]
    return found


@pytest.mark.parametrize("name", CALLS)
async def test_a_scripted_model_calls_as_models_of_its_format_do(scripted_stack: LocalStack, name: str) -> None:
    (call,) = await outputs(scripted_stack, SCRIPTED_BY_FORMAT[name].name, CALLS[name])
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "get_weather", ARGUMENTS)


async def test_a_scripted_model_reasons(scripted_stack: LocalStack) -> None:
    reasoning, message = await outputs(scripted_stack, THINKING.name, "<think>Hm.</think>Hello")
    assert (reasoning["content"][0]["text"], message["content"][0]["text"]) == ("Hm.", "Hello")


def test_envoy_waits_for_the_first_token_as_long_as_the_sidecar(stack: LocalStack) -> None:
    longest = SMOLLM2.settings["first_token_timeout"]
    settings = stack.envoy.settings
    assert longest < settings.egress_idle_timeout < settings.ingress_idle_timeout
    # A request that may search has ten minutes.
    assert 600 < settings.native_idle_timeout < settings.ingress_idle_timeout


async def test_a_dead_model_is_noticed(own_stack: LocalStack) -> None:
    assert own_stack.dead_models() == []
    async with Client(own_stack) as client:
        await client.events(script("some", {"sleep": 0.2}, {"crash": True}))
        assert await eventually(own_stack.dead_models) == [SCRIPTED.name]
    own_stack.check_alive()


async def test_proxies_have_no_part_in_what_stays_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        for name in PROXIES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
            monkeypatch.setenv(name.upper(), f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
            monkeypatch.delenv(name, raising=False)
        with LocalStack(tmp_path, models=[SCRIPTED]) as stack:
            async with Client(stack, trust_env=False) as client:
                assert (await client.ask(script("ok"))).status_code == 200
        with pytest.raises(BlockingIOError):
            proxy.accept()
