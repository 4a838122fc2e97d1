"""The LLM API contract: whole texts, told reasons, counts of our own, numbers written as text."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.backends.triton.contracts.llm_api import LlmApi, recognise
from sidecar.backends.triton.contracts.text import TextDecoder
from sidecar.responses.errors import ApiError
from tests.core.backends.text_contracts import Words, config, generation, metadata, names, read, response, sent, shapes

INPUTS = names(
    """text_input streaming return_finish_reason sampling_param_temperature sampling_param_top_k sampling_param_top_p
    sampling_param_max_tokens sampling_param_seed sampling_param_stop sampling_param_exclude_input_from_output
    sampling_param_return_perf_metrics"""
)


def contract(**changes: Any) -> LlmApi:
    values: dict[str, Any] = {"inputs": INPUTS, "batched": False, "tokens_per_block": 0}
    return LlmApi(**{**values, **changes})


def decoder(tokens_per_block: int = 0, **changes: Any) -> TextDecoder:
    return contract(tokens_per_block=tokens_per_block).decoder(generation(**changes), Words())


def test_the_request_tells_everything() -> None:
    assert sent(contract(), generation(temperature=0.5, top_p=0.25, max_tokens=3_000_000_000)) == {
        "text_input": "Grüße",
        "streaming": True,
        "return_finish_reason": True,
        "sampling_param_exclude_input_from_output": True,
        "sampling_param_max_tokens": 2**31 - 1,
        "sampling_param_seed": 2**63 + 1,
        "sampling_param_temperature": 0.5,
        "sampling_param_top_p": 0.25,
    }


def test_temperature_zero_is_greedy() -> None:
    request = sent(contract(), generation(temperature=0.0))
    assert request["sampling_param_top_k"] == 1
    assert not {"sampling_param_temperature", "sampling_param_top_p"} & set(request)


def test_a_model_without_batches_gets_no_batch_dimension() -> None:
    assert shapes(contract())["text_input"] == [1]


def test_whole_texts_come_once_and_are_counted_with_our_tokenizer() -> None:
    reader = decoder()
    texts = [("one", "None"), ("one two", "None"), ("one two three", "stop")]
    assert read(reader, *(response(text_output=text, finish_reason=reason) for text, reason in texts)) == (
        ["one", " two", " three"],
        3,
    )
    assert (reader.finish_reason, reader.input_tokens, reader.counted) == ("stop", None, True)


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_the_reason_told_counts_whatever_the_number_of_tokens(reason: str) -> None:
    for limit in (1, 100):
        reader = decoder(max_tokens=limit)
        read(reader, response(finish_reason=reason, text_output="one two"))
        assert reader.finish_reason == reason


@pytest.mark.parametrize(("limit", "reason"), [(2, "length"), (3, "stop")])
def test_a_reason_never_told_is_inferred(limit: int, reason: str) -> None:
    reader = decoder(max_tokens=limit)
    read(reader, response(text_output="one two"))
    assert reader.finish_reason == reason


@pytest.mark.parametrize("reason", ["cancelled", "timeout"])
def test_a_generation_that_was_given_up_is_a_failure(reason: str) -> None:
    with pytest.raises(ApiError, match="ended the answer early") as raised:
        decoder().feed(response(text_output="one", finish_reason=reason))
    assert raised.value.code == "infer_backend_unavailable"


@pytest.mark.parametrize(
    ("blocks", "cached"), [("1", 2), ("1.0", 2), ("9.0", 3), ("0.0", 0), ("None", 0), ("nan", 0), ("inf", 0), (1, 2)]
)
def test_cached_tokens_are_read_from_numbers_and_from_text(blocks: str | int, cached: int) -> None:
    reader = decoder(tokens_per_block=2)
    reader.feed(response(kv_cache_reused_block=blocks, text_output="a"))
    assert reader.cached_tokens == cached


def test_a_response_without_outputs_adds_nothing() -> None:
    assert decoder().feed(response()) == ("", 0)


def test_the_tensors_tell_the_contract() -> None:
    inputs = "text_input streaming sampling_param_max_tokens"
    found = recognise(metadata(inputs, "text_output finish_reason"), config(tokens_per_block="32"))
    assert found == LlmApi(inputs=names(inputs), batched=False, tokens_per_block=32)
    assert not found.guides
