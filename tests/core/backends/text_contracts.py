"""What the tests of the text contracts share: a generation, a vocabulary, requests read back, responses by hand."""

from __future__ import annotations

import json
import struct
from typing import Any

from sidecar.backends.backend import Piece
from sidecar.backends.triton.contracts.contract import Contract, Decoder, Generation
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2

END = 2


def generation(**changes: Any) -> Generation:
    values: dict[str, Any] = {
        "request_id": "resp_1",
        "prompt_ids": [5, 6, 7],
        "prompt_text": "Grüße",
        "max_tokens": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": 2**63 + 1,
        "end_ids": (END, 9),
        "stop": ("<end>", "<eot>"),
    }
    return Generation(**{**values, **changes})


class Words:
    """A vocabulary in which each word is a token."""

    def detokenizer(self) -> Any:
        raise AssertionError("text contracts detokenize nothing")

    def count(self, text: str) -> int:
        return len(text.split())


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def metadata(inputs: str, outputs: str) -> service_pb2.ModelMetadataResponse:
    message = service_pb2.ModelMetadataResponse(name="m")
    for name in inputs.split():
        message.inputs.add(name=name)
    for name in outputs.split():
        message.outputs.add(name=name)
    return message


def config(batch: int = 0, decoupled: bool = True, /, **parameters: str) -> model_config_pb2.ModelConfig:
    message = model_config_pb2.ModelConfig(max_batch_size=batch)
    message.model_transaction_policy.decoupled = decoupled
    for key, value in parameters.items():
        message.parameters[key].string_value = value
    return message


def sent(contract: Contract, of: Generation | None = None) -> dict[str, Any]:
    """The inputs of the contract's request by name, as plain values; ``sampling_parameters`` parsed."""
    message = service_pb2.ModelInferRequest.FromString(contract.request("m", of or generation()))
    assert (message.model_name, message.id) == ("m", "resp_1")
    assert message.parameters["triton_enable_empty_final_response"].bool_param
    values = {
        tensor.name: _plain(tensor.datatype, raw)
        for tensor, raw in zip(message.inputs, message.raw_input_contents, strict=True)
    }
    if "sampling_parameters" in values:
        values["sampling_parameters"] = json.loads(values["sampling_parameters"])
    return values


def shapes(contract: Contract) -> dict[str, list[int]]:
    message = service_pb2.ModelInferRequest.FromString(contract.request("m", generation()))
    return {tensor.name: list(tensor.shape) for tensor in message.inputs}


def response(**outputs: Any) -> service_pb2.ModelInferResponse:
    """A response with outputs in the order given; whole numbers become INT32, lists of text BYTES."""
    message = service_pb2.ModelInferResponse()
    for name, value in outputs.items():
        datatype, raw = _raw(value)
        message.outputs.add(name=name, datatype=datatype, shape=[1])
        message.raw_output_contents.append(raw)
    return message


def read(decoder: Decoder, *responses: service_pb2.ModelInferResponse) -> tuple[list[str], int]:
    """The texts of the responses, and the tokens told in all, both to the end."""
    pieces: list[Piece] = [*(decoder.feed(message) for message in responses), decoder.end()]
    return [text for text, _ in pieces if text], sum(tokens for _, tokens in pieces)


_FORMATS = {"INT32": "<i", "UINT64": "<Q", "FP32": "<f", "BOOL": "<?"}


def _plain(datatype: str, raw: bytes) -> Any:
    if datatype != "BYTES":
        return struct.unpack(_FORMATS[datatype], raw)[0]
    texts = []
    while raw:
        length = int.from_bytes(raw[:4], "little")
        texts.append(raw[4 : 4 + length].decode())
        raw = raw[4 + length :]
    return texts[0] if len(texts) == 1 else texts


def _raw(value: Any) -> tuple[str, bytes]:
    if isinstance(value, int):
        return "INT32", struct.pack("<i", value)
    if isinstance(value, float):
        return "FP32", struct.pack("<f", value)
    encoded = value if isinstance(value, bytes) else value.encode()
    return "BYTES", len(encoded).to_bytes(4, "little") + encoded
