"""The models of a node as SDKs ask for them, over both wires, and the OpenAPI document."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import openai
import pytest

from sidecar.cli.docs import generated_docs
from stack.local import SCRIPTED, LocalStack
from stack.setup import NODE, NODE_TESTS
from stack.triton import Triton
from tests.e2e.client import eventually
from tests.e2e.test_failures import log_lines

ALIAS = "b3os/scripted"
NAMES = [SCRIPTED.name, ALIAS]


@pytest.fixture(scope="module", params=["tunnel", "direct"])
def aliased(
    request: pytest.FixtureRequest, triton: Triton, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStack]:
    """A stack whose model has an alias with a slash."""
    with LocalStack(
        tmp_path_factory.mktemp("aliased"),
        models=[replace(SCRIPTED, settings={"aliases": [ALIAS]})],
        triton_address=f"127.0.0.1:{triton.grpc_port}",
        wire=request.param,
        workers=1,
        sidecar_settings={"log_level": "debug"},
    ) as stack:
        yield stack


@pytest.fixture
def sdk(aliased: LocalStack) -> openai.OpenAI:
    return openai.OpenAI(base_url=aliased.url, api_key=aliased.api_key)


def test_openai_python_lists_and_retrieves(sdk: openai.OpenAI) -> None:
    models = list(sdk.models.list())
    assert [model.id for model in models] == NAMES
    assert {(model.object, model.owned_by) for model in models} == {("model", "local")}
    assert sdk.models.retrieve(ALIAS) == models[1]
    with pytest.raises(openai.NotFoundError) as unknown:
        sdk.models.retrieve("b3os/none")
    assert (unknown.value.code, unknown.value.param) == ("model_not_available", "model")


def test_openai_node_lists_and_retrieves(aliased: LocalStack) -> None:
    done = subprocess.run(
        [NODE, "models.mjs", aliased.url, aliased.api_key, ALIAS],
        cwd=NODE_TESTS,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert [model["id"] for model in seen["list"]] == NAMES
    assert seen["one"] == seen["list"][1]
    assert seen["failure"] == {"status": 404, "code": "model_not_available", "param": "model"}


@pytest.mark.parametrize("escaped", [ALIAS, ALIAS.replace("/", "%2F")])
def test_a_slash_in_an_id_may_be_escaped(aliased: LocalStack, escaped: str) -> None:
    assert get(aliased, f"models/{escaped}", authorization=f"Bearer {aliased.api_key}")["id"] == ALIAS


def test_an_answer_names_the_alias_that_was_asked_for(sdk: openai.OpenAI) -> None:
    assert sdk.responses.create(model=ALIAS, input="hi").model == ALIAS


def test_the_openapi_document_needs_no_key(aliased: LocalStack) -> None:
    assert get(aliased, "openapi.json") == json.loads(generated_docs()["openapi.json"])


async def test_the_runtimes_words_are_in_the_debug_log_alone(aliased: LocalStack, sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as failed:
        sdk.with_options(max_retries=0).responses.create(model=ALIAS, input='script:[{"error": "secret words"}]')
    assert "secret" not in failed.value.response.text
    request_id = failed.value.response.headers["x-request-id"]

    def logged() -> list[dict[str, Any]] | None:
        about = [line for line in log_lines(aliased.run_dir / "sidecar.log", 0) if request_id in str(line)]
        return about if any(line["logger"] == "sidecar.access" for line in about) else None

    said, ended = await eventually(logged)
    assert said["level"] == "debug"
    assert "secret words" in said["message"]
    assert ended["backend_failure"] == "failed"
    assert "secret" not in str(ended)


def get(stack: LocalStack, path: str, **headers: str) -> dict[str, Any]:
    with urllib.request.urlopen(urllib.request.Request(f"{stack.url}/{path}", headers=headers), timeout=30) as answer:
        document: dict[str, Any] = json.load(answer)
    return document
