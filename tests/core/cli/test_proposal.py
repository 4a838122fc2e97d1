"""What ``init`` proposes: which tokenizer is whose, what its files tell, and a text that can be read back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from sidecar.backends.triton.client import ListedModel
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.backends.triton.contracts.ensemble import Ensemble
from sidecar.backends.triton.contracts.llm_api import LlmApi
from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.cli.proposal.models import UNKNOWN_CONTEXT, Proposal, propose
from sidecar.cli.proposal.text import configuration_text
from sidecar.cli.proposal.tokenizers import choose_tokenizer, context_length, find_tokenizers, model_name
from sidecar.config.load import load
from sidecar.config.models import ModelConfig
from tests.core.prompts.chat_models import byte_level

ENGINE = TokenLevel(frozenset(), batched=True, tokens_per_block=0, guides=True)
AROUND_IT = Ensemble(frozenset(), batched=True, accumulates=False, tokens_per_block=0, guides=True)
TEMPLATE = """{% for message in messages %}{{ message.content }}{% endfor %}
{# <tool_call>{"name": f, "arguments": {}}</tool_call> <think></think> #}"""


def tokenizer(directory: Path, **config: object) -> Path:
    directory.mkdir(parents=True)
    byte_level().save(str(directory / "tokenizer.json"))
    (directory / "chat_template.jinja").write_text(TEMPLATE)
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", **config}))
    return directory


def listed(name: str, told: Path | None = None) -> ListedModel:
    return ListedModel(name, "", {} if told is None else {"tokenizer_dir": str(told)})


def contracts(**found: Contract) -> dict[str, Contract]:
    return found


def test_tokenizers_are_found_where_they_are_and_six_levels_below(tmp_path: Path) -> None:
    near, cached = tokenizer(tmp_path / "a"), tokenizer(tmp_path / "1/2/3/4/5/6")
    tokenizer(tmp_path / "1/2/3/4/5/deep/7")
    assert find_tokenizers([tmp_path, near]) == [cached, near]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (listed("qwen3_8b"), ["Qwen3-8B"]),
        (listed("qwen"), ["Qwen3-8B"]),
        (listed("tensorrt_llm", Path("Llama")), ["Llama"]),
        (listed("tensorrt_llm"), ["Llama"]),
    ],
)
def test_a_tokenizer_is_known_by_what_triton_says_and_by_its_name(
    tmp_path: Path, model: ListedModel, expected: list[str]
) -> None:
    found = [tokenizer(tmp_path / name) for name in ("Llama", "Qwen3-8B")]
    model = listed(model.name, tmp_path / model.parameters["tokenizer_dir"] if model.parameters else None)
    assert choose_tokenizer(model, found, told=[tmp_path / "Llama"]) == [tmp_path / name for name in expected]


def test_among_several_none_is_guessed_and_a_single_one_is_taken(tmp_path: Path) -> None:
    found = [tokenizer(tmp_path / name) for name in ("a1", "b1")]
    assert choose_tokenizer(listed("model"), found, told=[]) == found
    assert choose_tokenizer(listed("model"), found[:1], told=[]) == found[:1]


def test_a_name_in_a_cache_is_that_of_the_repository() -> None:
    assert model_name(Path("/c/models--Qwen--Qwen3-8B/snapshots/0f1e")) == "Qwen3-8B"
    assert model_name(Path("/models/smollm2")) == "smollm2"


@pytest.mark.parametrize(
    ("told", "positions", "expected"),
    [
        (None, None, None),
        (131072, {"max_position_embeddings": 40960}, 40960),
        (8192, {"max_position_embeddings": 40960}, 8192),
        (10**30, {"text_config": {"max_position_embeddings": 4096}}, 4096),
        (512, [1], 512),
    ],
)
def test_the_context_is_the_least_that_the_files_tell(
    tmp_path: Path, told: int | None, positions: object, expected: int | None
) -> None:
    directory = tokenizer(tmp_path / "t", model_max_length=told)
    if positions is not None:
        (directory / "config.json").write_text(json.dumps(positions))
    assert context_length(directory) == expected


def test_an_engine_is_served_and_the_ensemble_around_it_is_not(tmp_path: Path) -> None:
    directory = tokenizer(tmp_path / "Qwen3-8B")
    models = [listed("ensemble"), listed("preprocessing", directory), listed("tensorrt_llm")]
    around, engine = "ensemble", "tensorrt_llm"
    first, second = propose(models, {around: AROUND_IT, engine: ENGINE}, [])
    assert (first.triton_model, first.name, first.served) == (engine, "Qwen3-8B", True)
    assert (first.calls, first.reasoning) == ("hermes", "think")
    assert (second.triton_model, second.name, second.served) == (around, around, False)
    assert engine in second.left_out


def test_what_cannot_be_told_is_said() -> None:
    (proposal,) = propose([listed("m")], contracts(m=ENGINE), [])
    assert proposal.missing == "its tokenizer directory: none was found"


def test_a_tokenizer_without_a_template_is_missing_too(tmp_path: Path) -> None:
    directory = tokenizer(tmp_path / "m")
    (directory / "chat_template.jinja").unlink()
    (proposal,) = propose([listed("m")], contracts(m=ENGINE), [directory])
    assert "the tokenizer has no chat template" in proposal.missing


def test_what_a_contract_lacks_is_noted(tmp_path: Path) -> None:
    directory = tokenizer(tmp_path / "m")
    llm_api = LlmApi(frozenset(), batched=False, tokens_per_block=0)
    (proposal,) = propose([listed("m")], contracts(m=llm_api), [directory])
    assert proposal.context_length == UNKNOWN_CONTEXT
    assert [note.partition(":")[0] for note in proposal.notes] == [
        "its files do not tell its context length",
        "it has no guided decoding",
    ]


def test_the_text_is_a_configuration_whatever_the_names_are(tmp_path: Path) -> None:
    directory = tokenizer(tmp_path / "yes: no # a")
    served = Proposal('"1.0": x', "engine", ENGINE, directory, context_length=2)
    absent = Proposal("absent", "absent", ENGINE, missing="its tokenizer directory: none was found")
    path = tmp_path / "sidecar.yaml"
    path.write_text(configuration_text("127.0.0.1:8001", "off", [served, absent]))
    config = load(path)
    assert (config.node, config.triton.address) == ("off", "127.0.0.1:8001")
    (model,) = config.models
    assert isinstance(model, ModelConfig)
    assert (model.name, model.tokenizer, model.context_length) == ('"1.0": x', directory, 2)


def test_what_stands_as_a_comment_fits_when_it_is_uncommented(tmp_path: Path) -> None:
    directory = tokenizer(tmp_path / "m")
    text = configuration_text("127.0.0.1:8001", "n", [Proposal("m", "m", ENGINE, directory, left_out="for the test")])
    # Sentences begin with a capital letter or a mark, keys do not.
    whole = re.sub(r"^( *)# (?=[a-z -])", r"\1", text, flags=re.MULTILINE)
    path = tmp_path / "sidecar.yaml"
    path.write_text(whole)
    assert {*yaml.safe_load(whole)} - {*yaml.safe_load(text)} == {"admission", "surfaces", "admin"}
    assert load(path).models[0].name == "m"
