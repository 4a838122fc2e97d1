"""A model's tensors tell its contract; its name does not."""

from __future__ import annotations

import pytest

from sidecar.backends.triton.discovery import UnknownContractError, recognise
from tests.core.backends.text_contracts import config, metadata


@pytest.mark.parametrize(
    ("inputs", "outputs", "contract"),
    [
        ("input_ids input_lengths request_output_len streaming", "output_ids sequence_length", "token_level"),
        ("text_input max_tokens stream bad_words", "text_output cum_log_probs", "ensemble"),
        ("text_input streaming sampling_param_max_tokens", "text_output finish_reason", "llm_api"),
        ("text_input stream sampling_parameters exclude_input_in_output", "text_output", "vllm"),
        # Inputs of its own do not hide a contract, nor does a mixture.
        ("text_input max_tokens sampling_parameters our_own", "text_output", "vllm"),
        ("text_input max_tokens our_own", "text_output ours", "ensemble"),
    ],
)
def test_the_tensors_tell_the_contract(inputs: str, outputs: str, contract: str) -> None:
    assert recognise(metadata(inputs, outputs), config()).name == contract


@pytest.mark.parametrize(
    ("inputs", "outputs", "decoupled", "why"),
    [
        ("text_input", "text_output", True, r"no known contract \(inputs: text_input\)"),
        ("input_ids request_output_len", "logits", True, "no known contract"),
        ("text_input max_tokens", "embedding", True, "no known contract"),
        ("text_input sampling_parameters", "text_output", False, "m is not decoupled"),
    ],
)
def test_other_models_are_refused_with_a_reason(inputs: str, outputs: str, decoupled: bool, why: str) -> None:
    with pytest.raises(UnknownContractError, match=why):
        recognise(metadata(inputs, outputs), config(0, decoupled))
