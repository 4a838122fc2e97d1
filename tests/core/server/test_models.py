"""What is wrong with a model is told by its key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from sidecar.config.load import ConfigError
from sidecar.config.models import ModelConfig
from sidecar.server.models import load_models

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A tokenizer directory with which all is well."""
    (tmp_path / "tokenizer.json").write_text(Tokenizer(models.BPE()).to_str())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return tmp_path


def settings(directory: Path, **more: Any) -> ModelConfig:
    return ModelConfig(name="m", triton_model="m", tokenizer=directory, context_length=2048, **more)


def test_models_that_are_well_are_loaded_in_order(directory: Path) -> None:
    config = settings(directory)
    loaded = load_models([config, config.model_copy(update={"name": "n"})])
    assert [model.name for model in loaded] == ["m", "n"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tool_format": "yaml"}, "models[1].tool_format: unknown tool format yaml; known are "),
        ({"reasoning_format": "aloud"}, "models[1].reasoning_format: unknown reasoning format aloud; known are "),
        ({"tokenizer": Path("/nowhere")}, "models[1].tokenizer: /nowhere/tokenizer.json: no such file"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(directory: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_models([settings(directory), settings(directory).model_copy(update=change)])
    assert str(raised.value).startswith(message)


def test_a_template_that_is_none_is_named_with_its_file(directory: Path) -> None:
    (directory / "chat_template.jinja").write_text("{% for %}")
    with pytest.raises(ConfigError) as raised:
        load_models([settings(directory)])
    assert str(raised.value).startswith(f"models[0].tokenizer: {directory}/chat_template.jinja: line 1")


def test_all_models_that_cannot_be_loaded_are_named(directory: Path) -> None:
    wrong = settings(directory, tool_format="yaml")
    with pytest.raises(ConfigError) as raised:
        load_models([wrong, settings(directory), wrong])
    lines = str(raised.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["models[0].tool_format", "models[2].tool_format"]
