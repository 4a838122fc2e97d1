"""The token-level contract: exact counts, exact reasons, only the tensors that the model has."""

import struct
from collections.abc import Iterable
from typing import Any

import pytest

from sidecar.backends.triton.contracts.contract import Generation
from sidecar.backends.triton.contracts.token_level import TokenLevel, TokenLevelDecoder, recognise
from sidecar.backends.triton.discovery import UnknownContractError
from sidecar.backends.triton.discovery import recognise as discover
from sidecar.backends.triton.protocol import service_pb2
from tests.core.backends.text_contracts import config, metadata

END = 2
ALL_INPUTS = frozenset(
    {
        "input_ids",
        "input_lengths",
        "request_output_len",
        "streaming",
        "seed",
        "end_id",
        "pad_id",
        "temperature",
        "runtime_top_p",
        "runtime_top_k",
        "exclude_input_in_output",
        "return_perf_metrics",
        "stop_words_list",
        "guided_decoding_guide_type",
        "guided_decoding_guide",
    }
)


def generation(**changes: Any) -> Generation:
    values: dict[str, Any] = {
        "request_id": "resp_1",
        "prompt_ids": [5, 6, 7],
        "prompt_text": "efg",
        "max_tokens": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": 2**63 + 1,
        "end_ids": (END,),
    }
    return Generation(**{**values, **changes})


def tensors(contract: TokenLevel, of: Generation) -> dict[str, tuple[list[int], bytes]]:
    message = service_pb2.ModelInferRequest.FromString(contract.request("m", of))
    return {
        tensor.name: (list(tensor.shape), raw)
        for tensor, raw in zip(message.inputs, message.raw_input_contents, strict=True)
    }


class Letters:
    """Detokenizes id n to the n-th letter; ids above 100 are half a character each."""

    def __init__(self) -> None:
        self.half = 0

    def feed(self, ids: Iterable[int]) -> str:
        return "".join(self._one(token) for token in ids)

    def _one(self, token: int) -> str:
        if token < 100:
            return chr(96 + token)
        self.half = (self.half + 1) % 2
        return "" if self.half else "é"

    def end(self) -> str:
        return "\ufffd" if self.half else ""


class Alphabet:
    """The vocabulary of letters."""

    def detokenizer(self) -> Letters:
        return Letters()

    def count(self, text: str) -> int:
        return len(text)


def response(*ids: int, reused_blocks: int | None = None) -> service_pb2.ModelInferResponse:
    message = service_pb2.ModelInferResponse()
    message.outputs.add(name="sequence_length", datatype="INT32", shape=[1, 1])
    message.raw_output_contents.append(struct.pack("<i", len(ids)))
    message.outputs.add(name="output_ids", datatype="INT32", shape=[1, 1, len(ids)])
    message.raw_output_contents.append(struct.pack(f"<{len(ids)}i", *ids))
    if reused_blocks is not None:
        message.outputs.add(name="kv_cache_reused_blocks", datatype="INT32", shape=[1, 1])
        message.raw_output_contents.append(struct.pack("<i", reused_blocks))
    return message


def decoder(tokens_per_block: int = 0, **changes: object) -> TokenLevelDecoder:
    contract = TokenLevel(ALL_INPUTS, batched=True, tokens_per_block=tokens_per_block)
    return contract.decoder(generation(**changes), Alphabet())


def test_the_request_holds_typed_batched_tensors() -> None:
    sent = tensors(TokenLevel(ALL_INPUTS, True, 0), generation(temperature=0.5, top_p=0.25))
    assert sent["input_ids"] == ([1, 3], struct.pack("<3i", 5, 6, 7))
    assert sent["input_lengths"] == ([1, 1], struct.pack("<i", 3))
    assert sent["request_output_len"] == ([1, 1], struct.pack("<i", 8))
    assert sent["temperature"] == ([1, 1], struct.pack("<f", 0.5))
    assert sent["runtime_top_p"] == ([1, 1], struct.pack("<f", 0.25))
    assert sent["seed"] == ([1, 1], struct.pack("<Q", 2**63 + 1))
    assert sent["end_id"] == ([1, 1], struct.pack("<i", END))
    assert "stop_words_list" not in sent
    assert "return_perf_metrics" not in sent


def test_temperature_zero_is_greedy() -> None:
    sent = tensors(TokenLevel(ALL_INPUTS, True, 0), generation(temperature=0.0))
    assert sent["runtime_top_k"] == ([1, 1], struct.pack("<i", 1))
    assert not {"temperature", "runtime_top_p"} & set(sent)


def test_a_model_without_batches_gets_no_batch_dimension() -> None:
    assert tensors(TokenLevel(ALL_INPUTS, False, 0), generation())["input_ids"][0] == [3]


def test_inputs_that_the_model_lacks_are_left_out() -> None:
    contract = TokenLevel(frozenset({"input_ids", "request_output_len"}), True, 0)
    assert set(tensors(contract, generation())) == {"input_ids", "request_output_len"}


def test_further_end_ids_become_stop_words() -> None:
    sent = tensors(TokenLevel(ALL_INPUTS, True, 0), generation(end_ids=(2, 8, 9)))
    assert sent["stop_words_list"] == ([1, 2, 2], struct.pack("<4i", 8, 9, 1, 2))


def test_an_empty_final_response_is_asked_for() -> None:
    message = service_pb2.ModelInferRequest.FromString(TokenLevel(ALL_INPUTS, True, 0).request("m", generation()))
    assert message.parameters["triton_enable_empty_final_response"].bool_param
    assert (message.model_name, message.id) == ("m", "resp_1")


def test_an_end_id_counts_and_shows_nothing() -> None:
    reader = decoder()
    assert [reader.feed(response(1)), reader.feed(response(2))] == [("a", 1), ("", 1)]
    assert (reader.end(), reader.finish_reason) == (("", 0), "stop")


def test_ids_after_an_end_id_are_nothing() -> None:
    reader = decoder()
    assert reader.feed(response(1, 2, 1, 1)) == ("a", 2)
    assert reader.feed(response(1)) == ("", 0)


def test_an_answer_of_all_tokens_allowed_was_cut() -> None:
    reader = decoder(max_tokens=3)
    assert [reader.feed(response(1, 1)), reader.feed(response(1))] == [("aa", 2), ("a", 1)]
    assert (reader.end(), reader.finish_reason) == (("", 0), "length")


def test_an_end_id_in_the_last_place_is_a_stop() -> None:
    reader = decoder(max_tokens=2)
    reader.feed(response(1, 2))
    assert (reader.end(), reader.finish_reason) == (("", 0), "stop")


def test_a_stream_that_ends_before_its_limit_has_stopped() -> None:
    reader = decoder(end_ids=())
    reader.feed(response(1))
    assert (reader.end(), reader.finish_reason) == (("", 0), "stop")


def test_half_a_character_waits_for_the_other() -> None:
    reader = decoder()
    assert [reader.feed(response(101)), reader.feed(response(102))] == [("", 1), ("é", 1)]
    reader.feed(response(101))
    assert reader.end() == ("\ufffd", 0)


def test_the_empty_final_response_adds_nothing() -> None:
    assert decoder().feed(service_pb2.ModelInferResponse()) == ("", 0)


@pytest.mark.parametrize(("blocks", "cached"), [(0, 0), (1, 2), (9, 3), (-1, 0)])
def test_cached_tokens_are_whole_blocks_of_the_prompt(blocks: int, cached: int) -> None:
    reader = decoder(tokens_per_block=2)
    reader.feed(response(1, reused_blocks=blocks))
    assert reader.cached_tokens == cached


def test_a_guide_is_sent_by_type() -> None:
    sent = tensors(TokenLevel(ALL_INPUTS, True, 0), generation(guide="{}"))
    assert sent["guided_decoding_guide_type"] == ([1, 1], b"\x0b\x00\x00\x00json_schema")
    assert sent["guided_decoding_guide"] == ([1, 1], b"\x02\x00\x00\x00{}")


def test_a_guide_of_calls_is_a_grammar() -> None:
    sent = tensors(TokenLevel(ALL_INPUTS, True, 0), generation(call_guide="g"))
    assert sent["guided_decoding_guide_type"] == ([1, 1], b"\x0c\x00\x00\x00ebnf_grammar")
    assert sent["guided_decoding_guide"] == ([1, 1], b"\x01\x00\x00\x00g")


@pytest.mark.parametrize(("guides", "form"), [(True, "ebnf_grammar"), (False, None)])
def test_a_model_takes_a_grammar_of_calls_where_it_guides(guides: bool, form: str | None) -> None:
    assert TokenLevel(ALL_INPUTS, True, 0, guides=guides).call_guide_form == form


@pytest.mark.parametrize(
    ("parameters", "guides"),
    [
        ({}, True),
        ({"guided_decoding_backend": "xgrammar"}, True),
        ({"guided_decoding_backend": ""}, False),
        ({"guided_decoding_backend": "${guided_decoding_backend}"}, False),
    ],
)
def test_a_model_guides_unless_its_configuration_names_no_backend(parameters: dict[str, str], guides: bool) -> None:
    inputs = "input_ids request_output_len guided_decoding_guide_type"
    contract = recognise(metadata(inputs, "output_ids"), config(4, **parameters))
    assert contract is not None
    assert contract.guides is guides


def test_the_tensors_tell_the_contract() -> None:
    contract = recognise(metadata("input_ids request_output_len", "output_ids"), config(4, tokens_per_block="32"))
    assert contract == TokenLevel(frozenset({"input_ids", "request_output_len"}), True, 32, guides=False)


@pytest.mark.parametrize(
    ("inputs", "outputs", "decoupled", "why"),
    [
        ("text_input", "text_output", True, "no known contract"),
        ("input_ids request_output_len", "logits", True, "no known contract"),
        ("input_ids request_output_len", "output_ids", False, "not decoupled"),
    ],
)
def test_other_models_are_refused_with_a_reason(inputs: str, outputs: str, decoupled: bool, why: str) -> None:
    with pytest.raises(UnknownContractError, match=why):
        discover(metadata(inputs, outputs), config(4, decoupled))
