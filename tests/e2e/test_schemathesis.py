"""Requests made from the OpenAPI document by schemathesis, right ones and wrong ones, against the real parts."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from stack.local import LocalStack
from stack.paths import ROOT, SCHEMATHESIS_VENV

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SECONDS = 40


@pytest.mark.timeout(240)
def test_schemathesis_finds_nothing(stack: LocalStack) -> None:
    seen = stack.access_log.stat().st_size
    done = subprocess.run(
        [
            SCHEMATHESIS_VENV / "bin" / "schemathesis",
            *["--config-file", os.devnull],
            *["run", f"{stack.url}/openapi.json", "--header", f"Authorization: Bearer {stack.api_key}"],
            *["--checks", CHECKS, "--phases", "fuzzing", "--workers", "2"],
            *["--seed", "1", "--max-examples", "200", "--max-time", str(SECONDS), "--continue-on-failure"],
            *["--suppress-health-check", "all", "--no-color"],
        ],
        cwd=ROOT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.e2e.python.schemathesis_hooks", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=SECONDS * 3,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = statuses_since(stack, seen)
    assert max(statuses) < 500
    # How many there are depends on the machine; without an answer among them nothing would have been tried.
    assert 200 in statuses


def statuses_since(stack: LocalStack, offset: int) -> list[int]:
    """The statuses of the requests for a response in Envoy's access log."""
    with stack.access_log.open() as log:
        log.seek(offset)
        entries = [json.loads(line) for line in log]
    return [entry["status"] for entry in entries if entry["path"] == "/v1/infer/responses"]
