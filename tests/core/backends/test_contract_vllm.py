"""The vLLM contract: one JSON object of sampling parameters, deltas, told counts and reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.backends.triton.contracts.text import TextDecoder
from sidecar.backends.triton.contracts.vllm import Vllm, recognise
from sidecar.responses.errors import ApiError
from tests.core.backends.text_contracts import Words, config, generation, metadata, names, read, response, sent, shapes

INPUTS = names(
    """text_input stream sampling_parameters exclude_input_in_output return_finish_reason return_num_input_tokens
    return_num_output_tokens"""
)
SCHEMA = '{"type": "object", "required": ["city"]}'


def contract(**changes: Any) -> Vllm:
    return Vllm(**{"inputs": INPUTS, "batched": False, **changes})


def decoder(**changes: Any) -> TextDecoder:
    return contract().decoder(generation(**changes), Words())


def test_the_request_tells_everything() -> None:
    assert sent(contract(), generation(temperature=0.5, top_p=0.25)) == {
        "text_input": "Grüße",
        "stream": True,
        "exclude_input_in_output": True,
        "return_finish_reason": True,
        "return_num_input_tokens": True,
        "return_num_output_tokens": True,
        "sampling_parameters": {
            "max_tokens": 8,
            "temperature": 0.5,
            "top_p": 0.25,
            "seed": 1,
            "skip_special_tokens": False,
            "stop_token_ids": [2, 9],
        },
    }
    assert shapes(contract())["sampling_parameters"] == [1]


def test_defaults_are_sent_explicitly() -> None:
    sampling = sent(contract(), generation(temperature=0.0, end_ids=()))["sampling_parameters"]
    assert sampling == {"max_tokens": 8, "temperature": 0.0, "top_p": 1.0, "seed": 1, "skip_special_tokens": False}


def test_an_older_backend_gets_only_inputs_that_it_has() -> None:
    few = names("text_input stream sampling_parameters")
    assert set(sent(contract(inputs=few))) == few


@pytest.mark.parametrize("name", ["structured_outputs", "guided_decoding"])
def test_a_guide_is_json_within_json(name: str) -> None:
    sampling = sent(contract(guide_parameter=name), generation(guide=SCHEMA))["sampling_parameters"]
    assert json.loads(sampling[name]) == {"json": json.loads(SCHEMA)}


def test_a_guide_of_calls_is_a_structural_tag_as_text() -> None:
    tag = '{"type": "structural_tag"}'
    sampling = sent(contract(), generation(call_guide=tag))["sampling_parameters"]
    assert json.loads(sampling["structured_outputs"]) == {"structural_tag": tag}


@pytest.mark.parametrize(("name", "form"), [("structured_outputs", "structural_tag"), ("guided_decoding", None)])
def test_older_backends_are_given_no_guide_of_calls(name: str, form: str | None) -> None:
    assert contract(guide_parameter=name).call_guide_form == form


def test_counts_and_reason_are_told() -> None:
    reader = decoder()
    told = {"num_input_tokens": 9, "finish_reason": "None"}
    responses = [
        response(text_output="one", num_output_tokens=1, **told),
        response(num_output_tokens=2, text_output=" two", **told),
        response(num_output_tokens=1, text_output="", num_input_tokens=9, finish_reason="stop"),
    ]
    assert read(reader, *responses) == (["one", " two"], 4)
    assert (reader.finish_reason, reader.input_tokens, reader.counted) == ("stop", 9, False)


def test_an_older_backend_without_counts_and_reason_is_read_too() -> None:
    reader = decoder(max_tokens=2)
    assert read(reader, response(text_output="one"), response(text_output=" two"))[1] == 2
    assert (reader.finish_reason, reader.counted) == ("length", True)


def test_a_reason_that_nobody_knows_is_an_end() -> None:
    reader = decoder(max_tokens=1)
    read(reader, response(text_output="one", num_output_tokens=1, finish_reason="repetition"))
    assert reader.finish_reason == "stop"


def test_an_aborted_generation_is_a_failure() -> None:
    with pytest.raises(ApiError, match="ended the answer early"):
        decoder().feed(response(finish_reason="abort", text_output=""))


@pytest.mark.parametrize(
    ("parameters", "name"), [({}, "structured_outputs"), ({"guide_parameter": "guided_decoding"}, "guided_decoding")]
)
def test_the_tensors_tell_the_contract(parameters: dict[str, str], name: str) -> None:
    inputs = "text_input stream sampling_parameters"
    found = recognise(metadata(inputs, "text_output"), config(**parameters))
    assert found == Vllm(inputs=names(inputs), batched=False, guide_parameter=name)
