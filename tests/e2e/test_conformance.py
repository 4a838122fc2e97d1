"""llm-comply's Open Responses cases on the node surface: they pass but for what ``docs/conformance.md`` explains."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from stack.local import SCRIPTED, LocalStack
from stack.paths import CLIENTS_VENV

NOT_SENT = [
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "max_tool_calls",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
]
NULL_WHEN_UNSET = ["temperature", "top_p"]
RESPONSE_OBJECT = {
    *(f"'{field}' is a required property" for field in NOT_SENT),
    *(f"{field}: None is not of type 'number'" for field in NULL_WHEN_UNSET),
}
RESPONSE_IN_EVENTS = {
    *(f"response: '{field}' is a required property" for field in NOT_SENT),
    *(f"response.{field}: None is not of type 'number'" for field in NULL_WHEN_UNSET),
}
IMAGE_REFUSED = {
    "HTTP 400 (expected [200])",
    "response.id is missing or empty",
    "response.output is missing or empty",
    "expected status='completed', got 'None'",
}

# What each case finds. The compaction cases accept the 404 of a surface without that endpoint.
FINDINGS: dict[str, set[str]] = {
    "basic-response": RESPONSE_OBJECT,
    "system-prompt": RESPONSE_OBJECT,
    "multi-turn": RESPONSE_OBJECT,
    "assistant-phase": RESPONSE_OBJECT,
    "response-output-phase-schema": RESPONSE_OBJECT,
    "streaming-response": RESPONSE_OBJECT | RESPONSE_IN_EVENTS,
    "streaming-usage": RESPONSE_OBJECT | RESPONSE_IN_EVENTS,
    "image-input": IMAGE_REFUSED,
    "error-handling": set(),
    "compact-response": set(),
    "compact-missing-model": set(),
}


@pytest.fixture(scope="module")
def results(stack: LocalStack) -> dict[str, dict[str, Any]]:
    """The result of every case, by its name."""
    program = CLIENTS_VENV / "bin" / "llm-comply"
    target = ["--base-url", stack.url, "--api-key", stack.api_key, "--model", SCRIPTED.name]
    done = subprocess.run(
        [program, *target, "--filter", ",".join(FINDINGS), "--json"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    # 1 says that a case found something.
    assert done.returncode in {0, 1}, done.stderr
    return {result["id"]: result for result in json.loads(done.stdout)["results"]}


@pytest.mark.parametrize("case", FINDINGS)
def test_a_case_finds_only_what_is_known(results: dict[str, dict[str, Any]], case: str) -> None:
    assert results[case]["status"] == ("failed" if FINDINGS[case] else "passed")
    assert set(results[case].get("errors", [])) == FINDINGS[case]
