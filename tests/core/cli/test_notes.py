"""What an operator is told of a model whose chat template is not wholly understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecar.config.models import ModelConfig
from sidecar.server.models import load_model
from tests.core.prompts.chat_models import PLAIN, TOOLS, byte_level

HERMES = TOOLS + '{# <tool_call>{"name": f, "arguments": {}}</tool_call> #}'
FOREIGN = PLAIN + "{# <deep:thinking> and </deep:thinking> #}"


def notes(directory: Path, template: str, **settings: str) -> str:
    byte_level().save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    model = {"name": "m", "triton_model": "m", "tokenizer": directory, "context_length": 1000, **settings}
    return "\n".join(load_model(ModelConfig.model_validate(model)).notes)


def test_tools_in_no_known_form_are_told(tmp_path: Path) -> None:
    assert "tool_format" in notes(tmp_path, TOOLS)


def test_markers_like_those_of_reasoning_are_told(tmp_path: Path) -> None:
    assert "<deep:thinking> and </deep:thinking>" in notes(tmp_path, FOREIGN)


@pytest.mark.parametrize(
    ("template", "settings"),
    [
        (PLAIN, {}),
        (HERMES, {}),
        (TOOLS, {"tool_format": "hermes"}),
        (TOOLS, {"tool_format": "none"}),
        (FOREIGN, {"reasoning_format": "none"}),
    ],
)
def test_there_is_nothing_to_tell_of_what_is_known_or_set(
    tmp_path: Path, template: str, settings: dict[str, str]
) -> None:
    assert notes(tmp_path, template, **settings) == ""
