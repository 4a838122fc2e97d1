"""A tokenizer directory is read once, whoever uses it, and what is wrong with it is told by the file's name."""

import gc
import json
import os
from pathlib import Path
from weakref import ref

import pytest

from sidecar.prompts.chat_model import load_chat_model
from sidecar.prompts.renderer import PromptRenderer
from tests.core.prompts.chat_models import PLAIN, TOOLS, byte_level


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(PLAIN, encoding="utf-8")
    return tmp_path


def test_models_of_one_directory_share_what_is_read_from_it(directory: Path) -> None:
    link = directory / "link"
    link.symlink_to(directory, target_is_directory=True)
    first = load_chat_model(directory, ["<think>", "</think>"])
    assert load_chat_model(str(link), ("</think>", "<think>")) is first
    renderers = [PromptRenderer(first, late_system=place) for place in ("user", "leading")]
    assert renderers[0].features is renderers[1].features


def test_other_visible_markers_are_another_model(directory: Path) -> None:
    assert load_chat_model(directory, ["<|end|>"]) is not load_chat_model(directory)


def test_a_changed_file_is_read_anew(directory: Path) -> None:
    first = load_chat_model(directory)
    template = directory / "chat_template.jinja"
    template.write_text(TOOLS, encoding="utf-8")
    os.utime(template, ns=(1, 1))
    second = load_chat_model(directory)
    assert (first.features.tools, second.features.tools) == (False, True)


def test_what_nobody_uses_is_let_go(directory: Path) -> None:
    model = load_chat_model(directory)
    seen = ref(model)
    del model
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("tokenizer.json", None, "no such file"),
        ("tokenizer.json", b"{", "tokenizer"),
        ("chat_template.jinja", b"\n{% if %}", "line 2"),
        ("chat_template.jinja", b"\xff", "decode"),
        ("chat_template.jinja", b"{{ nothing.at_all }}", "user turn"),
        ("chat_template.jinja", None, "tokenizer_config.json: the tokenizer has no chat template"),
        ("tokenizer_config.json", b"[", "Expecting"),
    ],
)
def test_what_cannot_be_used_is_named(directory: Path, name: str, content: bytes | None, words: str) -> None:
    if content is None:
        (directory / name).unlink()
    else:
        (directory / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as refused:
        load_chat_model(directory)
    assert str(directory) in str(refused.value)
    assert content is None or name in str(refused.value)


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing/tokenizer\.json: no such file"):
        load_chat_model(tmp_path / "missing")


@pytest.mark.parametrize("templates", [[], ["x"], [{}], [{"name": "default", "template": 5}], {"a": 1}])
def test_a_configuration_without_a_usable_template_has_none(directory: Path, templates: object) -> None:
    (directory / "chat_template.jinja").unlink()
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}), encoding="utf-8")
    with pytest.raises(ValueError, match="no chat template"):
        load_chat_model(directory)
