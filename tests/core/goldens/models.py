"""A model of two chat templates, whose tokenizer knows a token for each byte, behind each of Triton's contracts."""

from __future__ import annotations

from functools import cache

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from sidecar.backends.triton.contracts.contract import Contract
from sidecar.backends.triton.contracts.ensemble import Ensemble
from sidecar.backends.triton.contracts.llm_api import LlmApi
from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.backends.triton.contracts.vllm import Vllm
from sidecar.config.models import ModelConfig
from sidecar.exchange.catalog import ServedModel
from sidecar.generation.style import choose_style
from sidecar.prompts.chat_model import ChatModel
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import Tokenizer
from stack.paths import ROOT

DATA = ROOT / "tests" / "data"
END = "<|im_end|>"
# Those that mark reasoning and calls are no special ones, so that they are seen in generated text.
_SPECIAL = ("<|im_start|>", END)
_MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>")

TEMPLATES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((DATA / "templates").glob("*.jinja"))}
"""``native`` takes tools, reasoning and images, ``plain`` takes text and one system message at the start."""


def _inputs(names: str) -> frozenset[str]:
    return frozenset(names.split())


CONTRACTS: dict[str, Contract] = {
    "token_level": TokenLevel(
        _inputs(
            "input_ids input_lengths request_output_len streaming exclude_input_in_output seed temperature "
            "runtime_top_k runtime_top_p end_id pad_id guided_decoding_guide_type guided_decoding_guide"
        ),
        batched=True,
        tokens_per_block=0,
        guides=True,
    ),
    "ensemble": Ensemble(
        _inputs(
            "text_input max_tokens stream exclude_input_in_output seed temperature top_k top_p end_id pad_id stop_words"
        ),
        batched=True,
        accumulates=False,
        tokens_per_block=0,
    ),
    "llm_api": LlmApi(
        _inputs(
            "text_input streaming return_finish_reason sampling_param_exclude_input_from_output sampling_param_seed "
            "sampling_param_max_tokens sampling_param_temperature sampling_param_top_k sampling_param_top_p"
        ),
        batched=False,
        tokens_per_block=0,
    ),
    "vllm": Vllm(
        _inputs(
            "text_input image sampling_parameters stream exclude_input_in_output return_finish_reason "
            "return_num_input_tokens return_num_output_tokens"
        ),
        batched=False,
        max_images=2,
    ),
}


@cache
def vocabulary() -> tokenizers.Tokenizer:
    """A token for each byte, and one for each marker: whoever counts bytes has counted tokens."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(_SPECIAL))
    tokenizer.add_tokens([AddedToken(marker, normalized=False) for marker in _MARKERS])
    return tokenizer


def encode(text: str) -> list[int]:
    """The ids of ``text``."""
    return vocabulary().encode(text, add_special_tokens=False).ids


def tokens(ids: list[int]) -> list[str]:
    """``ids`` in a form to read: markers apart, all that stands between two of them as one text."""
    added = vocabulary().get_added_tokens_decoder()
    runs: list[list[int]] = []
    for token_id in ids:
        if runs and token_id not in added and runs[-1][-1] not in added:
            runs[-1].append(token_id)
        else:
            runs.append([token_id])
    return [vocabulary().decode(run, skip_special_tokens=False) for run in runs]


@cache
def model(template: str, contract: str) -> ServedModel:
    """The model as a node would have made it of its files."""
    source = TEMPLATES[template]
    tokenizer = Tokenizer(vocabulary(), template_source=source, eos_token=END, eos_ids=tuple(encode(END)))
    settings = ModelConfig.model_validate(
        {
            "name": "chat",
            "triton_model": f"chat_{contract}",
            "tokenizer": DATA,
            "context_length": 4096,
            "catalog": {"slug": "acme/chat"},
        }
    )
    return ServedModel(
        settings,
        PromptRenderer(ChatModel.of(tokenizer)),
        choose_style(source, reasoning="auto", calls="auto"),
        contract=CONTRACTS[contract],
    )
