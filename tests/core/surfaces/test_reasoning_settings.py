"""How a surface shows reasoning: as it is set, where a request asks for it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sidecar.config.models import SurfaceSettings
from sidecar.responses.items import ReasoningItem
from sidecar.responses.sealing import KEY_BYTES, Sealer
from sidecar.surfaces import SURFACES, Surface
from tests.core.surfaces.node_requests import JSON_HEADERS, USER

NODE = SURFACES["node"]
SEALER = Sealer(bytes(KEY_BYTES))
SEALING = replace(NODE, settings=SurfaceSettings(encrypted_reasoning="sealed"), sealer=SEALER)
INCLUDE = {"include": ["reasoning.encrypted_content"]}


def accept(surface: Surface, **parameters: Any) -> Any:
    return surface.accept(JSON_HEADERS, json.dumps({"model": "m", "input": "hi"} | parameters).encode())


@pytest.mark.parametrize(
    ("setting", "reasoning", "mirrored"),
    [
        ("mirror", {"summary": "auto"}, True),
        ("mirror", {"generate_summary": "concise"}, True),
        ("mirror", {"effort": "low", "summary": None}, False),
        ("off", {"summary": "auto"}, False),
    ],
)
def test_reasoning_is_mirrored_where_a_summary_is_asked_for(setting: Any, reasoning: Any, mirrored: bool) -> None:
    surface = replace(NODE, settings=SurfaceSettings(reasoning_summary=setting))
    assert surface.reasoning_form(accept(surface, reasoning=reasoning)).mirrored is mirrored


@pytest.mark.parametrize(
    ("surface", "parameters", "sealed"),
    [
        (SEALING, INCLUDE, True),
        (SEALING, {}, False),
        (NODE, INCLUDE, False),
        (replace(SEALING, settings=SurfaceSettings()), INCLUDE, False),
    ],
)
def test_reasoning_is_sealed_where_that_is_asked_for(
    surface: Surface, parameters: dict[str, Any], sealed: bool
) -> None:
    assert (surface.reasoning_form(accept(surface, **parameters)).seal is not None) is sealed


@pytest.mark.parametrize(("surface", "text"), [(SEALING, "hidden"), (NODE, "")])
def test_sealed_reasoning_is_read_when_it_comes_back(surface: Surface, text: str) -> None:
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": SEALER.seal("hidden", "rs_1")}
    item = accept(surface, input=[USER, sealed]).input[1]
    assert isinstance(item, ReasoningItem)
    assert item.text == text
