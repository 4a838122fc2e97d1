"""A tokenizer directory as models are published: which file says what, and what happens when one is broken."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import processors

from sidecar.prompts.tokenizer import Tokenizer
from tests.core.prompts.chat_models import byte_level


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(directory: Path, name: str, value: Any) -> None:
    (directory / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def test_tokenizer_json_alone_is_enough(directory: Path) -> None:
    tokenizer = Tokenizer.load(directory)
    assert tokenizer.encode("a fox") == byte_level().encode("a fox").ids
    assert (tokenizer.template_source, tokenizer.bos_token, tokenizer.eos_ids) == (None, "", ())


def test_tokens_are_strings_or_objects(directory: Path) -> None:
    write(directory, "tokenizer_config.json", {"bos_token": "<|start|>", "eos_token": {"content": "<|end|>"}})
    tokenizer = Tokenizer.load(str(directory))
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|start|>", "<|end|>")
    assert tokenizer.eos_ids == (byte_level().token_to_id("<|end|>"),)
    assert tokenizer.eos_tokens == ("<|end|>",)


@pytest.mark.parametrize(("generation", "eos_ids"), [(2, (2, 0)), ([2, 1], (2, 1, 0)), ([0, 2], (0, 2)), (None, (0,))])
def test_ids_that_end_an_answer_come_from_both_files(
    directory: Path, generation: Any, eos_ids: tuple[int, ...]
) -> None:
    write(directory, "tokenizer_config.json", {"eos_token": "<|end|>"})
    write(directory, "generation_config.json", {"eos_token_id": generation})
    assert Tokenizer.load(directory).eos_ids == eos_ids


@pytest.mark.parametrize(
    ("in_config", "source"),
    [
        ("one", "one"),
        ([{"name": "tool_use", "template": "two"}, {"name": "default", "template": "one"}], "one"),
        ([{"name": "tool_use", "template": "two"}], None),
        (None, None),
    ],
)
def test_the_configuration_may_hold_the_template(directory: Path, in_config: Any, source: str | None) -> None:
    write(directory, "tokenizer_config.json", {"chat_template": in_config})
    assert Tokenizer.load(directory).template_source == source


def test_a_template_file_comes_before_the_configuration(directory: Path) -> None:
    write(directory, "tokenizer_config.json", {"chat_template": "config"})
    write(directory, "chat_template.jinja", "datei ü")
    assert Tokenizer.load(directory).template_source == "datei ü"


def with_bos(directory: Path) -> None:
    """Let the tokenizer of the directory begin every text with <|start|>."""
    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    start = tokenizer.token_to_id("<|start|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|start|> $A", special_tokens=[("<|start|>", start)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))


@pytest.mark.parametrize(
    ("adds", "config", "sent"),
    [
        (True, {"bos_token": "<|start|>"}, "hi"),
        (False, {"bos_token": "<|start|>"}, "<|start|>hi"),
        (True, {"bos_token": "<|end|>"}, "<|start|>hi"),
        (True, {}, "<|start|>hi"),
        # Only some classes of the transformers library look at the switch.
        (False, {"bos_token": "<|start|>", "add_bos_token": True, "tokenizer_class": "LlamaTokenizerFast"}, "hi"),
        (True, {"bos_token": "<|start|>", "add_bos_token": False, "tokenizer_class": "LlamaTokenizer"}, "<|start|>hi"),
        (False, {"bos_token": "<|start|>", "add_bos_token": True, "tokenizer_class": "Other"}, "<|start|>hi"),
    ],
)
def test_a_runtime_that_adds_the_first_token_is_not_sent_it(
    directory: Path, adds: bool, config: dict[str, Any], sent: str
) -> None:
    if adds:
        with_bos(directory)
    write(directory, "tokenizer_config.json", config)
    tokenizer = Tokenizer.load(directory)
    assert tokenizer.runtime_text("<|start|>hi") == sent
    assert tokenizer.runtime_text("hi<|start|>") == "hi<|start|>"
    start = byte_level().token_to_id("<|start|>")
    assert start is not None
    assert tokenizer.encode("<|start|>hi").count(start) == 1


def test_a_generated_text_is_counted_as_it_is(directory: Path) -> None:
    with_bos(directory)
    text = "a quick fox<|end|>"
    assert Tokenizer.load(directory).count(text) == len(byte_level().encode(text).ids)


def test_truncation_and_padding_of_the_file_have_no_effect(directory: Path) -> None:
    limited = Tokenizer.load(directory)
    file = json.loads((directory / "tokenizer.json").read_text())
    file["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    write(directory, "tokenizer.json", file)
    assert Tokenizer.load(directory).encode("a quick fox") == limited.encode("a quick fox")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", '{"model": {}}'),
        ("tokenizer_config.json", "{"),
        ("tokenizer_config.json", "[]"),
        ("generation_config.json", "nonsense"),
    ],
)
def test_a_broken_file_is_named(directory: Path, name: str, text: str) -> None:
    write(directory, name, text)
    with pytest.raises(ValueError, match=name):
        Tokenizer.load(directory)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.json: no such file"):
        Tokenizer.load(tmp_path)
