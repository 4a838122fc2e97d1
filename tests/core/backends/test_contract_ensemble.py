"""The ensemble contract: deltas or whole texts, counts summed, reasons inferred, broken characters counted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.backends.triton.contracts.ensemble import Ensemble, recognise
from sidecar.backends.triton.contracts.text import TextDecoder
from tests.core.backends.text_contracts import Words, config, generation, metadata, names, read, response, sent, shapes

INPUTS = names(
    """text_input max_tokens stream exclude_input_in_output return_num_input_tokens return_num_output_tokens seed
    top_k top_p temperature end_id pad_id stop_words return_perf_metrics guided_decoding_guide_type
    guided_decoding_guide"""
)


def contract(**changes: Any) -> Ensemble:
    values: dict[str, Any] = {"inputs": INPUTS, "batched": True, "accumulates": False, "tokens_per_block": 0}
    return Ensemble(**{**values, **changes})


def decoder(accumulates: bool = False, tokens_per_block: int = 0, **changes: Any) -> TextDecoder:
    made = contract(accumulates=accumulates, tokens_per_block=tokens_per_block)
    return made.decoder(generation(**changes), Words())


def test_the_request_tells_everything() -> None:
    assert sent(contract(), generation(temperature=0.5, top_p=0.25)) == {
        "text_input": "Grüße",
        "max_tokens": 8,
        "stream": True,
        "exclude_input_in_output": True,
        "return_num_input_tokens": True,
        "return_num_output_tokens": True,
        "seed": 2**63 + 1,
        "temperature": 0.5,
        "top_p": 0.25,
        "end_id": 2,
        "pad_id": 2,
        "stop_words": ["<end>", "<eot>"],
    }


def test_temperature_zero_is_greedy() -> None:
    request = sent(contract(), generation(temperature=0.0))
    assert request["top_k"] == 1
    assert not {"temperature", "top_p"} & set(request)


def test_a_limit_beyond_32_bits_is_lowered() -> None:
    assert sent(contract(), generation(max_tokens=3_000_000_000))["max_tokens"] == 2**31 - 1


def test_what_has_no_value_or_no_input_is_left_out() -> None:
    assert not {"end_id", "pad_id", "stop_words"} & set(sent(contract(), generation(end_ids=(), stop=())))
    assert set(sent(contract(inputs=names("text_input max_tokens")))) == {"text_input", "max_tokens"}


def test_inputs_have_a_batch_dimension_where_the_model_has_one() -> None:
    assert shapes(contract())["stop_words"] == [1, 2]
    assert shapes(contract(batched=False))["text_input"] == [1]


def test_a_guide_is_sent_by_type() -> None:
    request = sent(contract(), generation(guide="{}"))
    assert (request["guided_decoding_guide_type"], request["guided_decoding_guide"]) == ("json_schema", "{}")


def test_a_guide_of_calls_is_a_grammar() -> None:
    request = sent(contract(), generation(call_guide='root ::= ""'))
    assert (request["guided_decoding_guide_type"], request["guided_decoding_guide"]) == ("ebnf_grammar", 'root ::= ""')


def test_performance_metrics_are_asked_for_where_blocks_have_a_size() -> None:
    assert sent(contract(tokens_per_block=32))["return_perf_metrics"]


def test_counts_are_summed_and_the_input_counted_once() -> None:
    reader = decoder()
    one = {"num_output_tokens": 1, "num_input_tokens": 9}
    responses = [response(text_output=text, **one) for text in ("a", " b", " c")]
    assert read(reader, *responses) == (["a", " b", " c"], 3)
    assert (reader.input_tokens, reader.counted) == (9, False)


def test_without_counts_our_tokenizer_counts_and_a_flag_says_so() -> None:
    reader = decoder()
    assert read(reader, response(text_output="one two"), response(text_output=" three four"))[1] == 4
    assert (reader.input_tokens, reader.counted) == (None, True)


def test_until_the_end_a_response_with_text_counts_as_a_token() -> None:
    reader = decoder()
    assert reader.feed(response(text_output="one two")) == ("one two", 1)
    assert reader.feed(response(text_output="")) == ("", 0)
    assert reader.end() == ("", 1)
    many = decoder()
    assert read(many, *(response(text_output=text) for text in "word"))[1] == 1


@pytest.mark.parametrize(("limit", "reason"), [(2, "length"), (1, "length"), (3, "stop")])
@pytest.mark.parametrize("counts", [{"num_output_tokens": 1}, {}])
def test_an_answer_of_all_tokens_allowed_was_cut(limit: int, reason: str, counts: dict[str, int]) -> None:
    reader = decoder(max_tokens=limit)
    read(reader, response(text_output="one", **counts), response(text_output=" two", **counts))
    assert reader.finish_reason == reason


def test_outputs_may_come_in_any_order_among_unknown_ones() -> None:
    outputs = {"text_output": "a", "num_output_tokens": 2, "context_logits": 0.0, "kv_cache_reused_blocks": 1}
    for order in itertools.permutations(outputs.items()):
        reader = decoder(tokens_per_block=2)
        assert reader.feed(response(**dict(order))) == ("a", 2)
        assert reader.cached_tokens == 2


@pytest.mark.parametrize(("blocks", "cached"), [(0, 0), (1, 2), (9, 3), (-1, 0)])
def test_cached_tokens_are_whole_blocks_of_the_prompt(blocks: int, cached: int) -> None:
    reader = decoder(tokens_per_block=2)
    reader.feed(response(text_output="a", kv_cache_reused_blocks=blocks))
    assert reader.cached_tokens == cached


def test_the_empty_final_response_adds_nothing() -> None:
    assert decoder().feed(response()) == ("", 0)


def test_an_accumulating_models_text_comes_once() -> None:
    reader = decoder(accumulates=True)
    assert read(reader, *(response(text_output=text) for text in ("Hel", "Hello", "Hello wor")))[0] == [
        "Hel",
        "lo",
        " wor",
    ]


def test_without_accumulation_texts_are_taken_as_they_are() -> None:
    assert read(decoder(), response(text_output="ha"), response(text_output="haha"))[0] == ["ha", "haha"]


def test_an_unfinished_character_at_the_end_of_a_whole_text_waits() -> None:
    reader = decoder(accumulates=True)
    texts = ["a", "a\ufffd", "a\ufffd\ufffd", "a😀", "a😀\ufffd"]
    assert read(reader, *(response(text_output=text) for text in texts))[0] == ["a", "😀"]
    assert reader.broken_characters == 0


@given(st.text(max_size=12), st.data())
def test_any_growth_of_a_whole_text_gives_the_text(text: str, data: st.DataObject) -> None:
    text = text.replace("\ufffd", "?")
    encoded = text.encode()
    ends = data.draw(st.lists(st.integers(0, len(encoded)), max_size=8).map(sorted))
    reader = decoder(accumulates=True)
    responses = [response(text_output=encoded[:end].decode(errors="replace")) for end in (*ends, len(encoded))]
    assert "".join(read(reader, *responses)[0]) == text


def test_a_whole_text_that_stays_broken_is_not_held_back_for_ever() -> None:
    reader = decoder(accumulates=True)
    assert read(reader, response(text_output="a" + "\ufffd" * 5))[0] == ["a\ufffd\ufffd"]


def test_broken_characters_are_counted() -> None:
    reader = decoder()
    read(reader, response(text_output="a\ufffd\ufffd"), response(text_output="\ufffdb"))
    assert reader.broken_characters == 3


def test_only_a_model_that_does_not_accumulate_has_a_remedy() -> None:
    assert "accumulate_tokens" in contract().remedy
    assert contract(accumulates=True).remedy == ""


def test_bytes_that_are_no_text_are_replaced() -> None:
    reader = decoder()
    assert reader.feed(response(text_output=b"a\xff")) == ("a\ufffd", 1)


@pytest.mark.parametrize(
    ("parameters", "accumulates"),
    [({}, False), ({"accumulate_tokens": "true"}, True), ({"accumulate_tokens": "${accumulate_tokens}"}, False)],
)
def test_the_tensors_tell_the_contract(parameters: dict[str, str], accumulates: bool) -> None:
    found = recognise(
        metadata("text_input max_tokens stream", "text_output"), config(8, tokens_per_block="64", **parameters)
    )
    assert found == Ensemble(
        inputs=names("text_input max_tokens stream"),
        batched=True,
        accumulates=accumulates,
        tokens_per_block=64,
        guides=False,
    )
