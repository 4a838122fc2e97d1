"""The documents made from the code are kept up to date."""

from __future__ import annotations

import json

import pytest

from sidecar.cli.docs import generated_docs
from sidecar.surfaces import SURFACES
from sidecar.surfaces.openapi import document
from stack.paths import ROOT


@pytest.mark.parametrize("name", ["errors.md", "exchange.md", "openapi.json", "parameters.md"])
def test_the_kept_documents_are_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == generated_docs()[name], (
        "stale: .venv/bin/responses-sidecar docs docs"
    )


def test_the_document_is_json_and_always_the_same() -> None:
    again = generated_docs()["openapi.json"]
    assert json.loads(again) == document(SURFACES["node"])
    assert generated_docs()["openapi.json"] == again
