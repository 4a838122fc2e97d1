"""Triton's side of a golden: the request in a form to read, and the stream of a generation for each contract."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from sidecar.backends.triton.frames import frame
from sidecar.backends.triton.protocol import service_pb2
from sidecar.exchange.commands import CallUpstream
from tests.core import kit
from tests.core.backends.text_contracts import response
from tests.core.goldens.models import END, encode, tokens

_NUMBERS = {"INT32": "i", "UINT64": "Q", "FP32": "f", "BOOL": "?"}

Generation = Mapping[str, Any]
"""What the model writes: ``pieces`` of text, why they end (``finish``), or the ``failure`` in Triton's words."""


def readable_call(call: CallUpstream) -> str:
    """The call of the upstream as JSON, every value of its message decoded, a line for each input."""
    message = service_pb2.ModelInferRequest.FromString(call.body[5:])
    assert frame(message.SerializeToString()) == call.body
    head = {
        "path": call.path,
        "content_type": call.content_type,
        "headers": dict(call.headers),
        "model_name": message.model_name,
        "id": message.id,
        "parameters": {name: value.bool_param for name, value in message.parameters.items()},
    }
    inputs = [
        {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        | _readable(tensor.name, tensor.datatype, raw)
        for tensor, raw in zip(message.inputs, message.raw_input_contents, strict=True)
    ]
    lines = [f"  {_json(name)}: {_json(value)}" for name, value in head.items()]
    rows = ",\n".join(f"    {_json(row)}" for row in inputs)
    return "{\n" + ",\n".join([*lines, f'  "inputs": [\n{rows}\n  ]']) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _readable(name: str, datatype: str, raw: bytes) -> dict[str, Any]:
    if datatype == "BYTES":
        return {"values": [_parsed(text) for text in _texts(raw)]}
    form = _NUMBERS[datatype]
    values = list(struct.unpack(f"<{len(raw) // struct.calcsize(form)}{form}", raw))
    if name == "input_ids":
        return {"tokens": tokens(values)}
    return {"values": [float(f"{value:.7g}") for value in values] if datatype == "FP32" else values}


def _texts(raw: bytes) -> Iterator[str]:
    while raw:
        length = int.from_bytes(raw[:4], "little")
        yield raw[4 : 4 + length].decode()
        raw = raw[4 + length :]


def _parsed(value: Any) -> Any:
    """JSON inside of text as ``{"json": …}``, however deep; all else as it is."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        return {"json": _parsed(json.loads(value))}
    if isinstance(value, dict):
        return {key: _parsed(member) for key, member in value.items()}
    return value


def stream(contract: str, generation: Generation, prompt_tokens: int) -> list[bytes]:
    """The frames in which Triton answers, the trailers among them."""
    pieces = _RESPONSES[contract](generation, prompt_tokens)
    if "failure" in generation:
        return [*pieces, kit.failure(generation["failure"]), kit.trailers()]
    return [*pieces, kit.final()]


def _token_level(generation: Generation, prompt_tokens: int) -> list[bytes]:
    """Ids; those of an answer that ended by itself end with the end token."""
    ends = [END] if generation.get("finish") == "stop" else []
    return [kit.response(encode(piece)) for piece in (*generation["pieces"], *ends)]


def _ensemble(generation: Generation, prompt_tokens: int) -> list[bytes]:
    """The new text, and nothing else."""
    return [_frame(text_output=piece) for piece in generation["pieces"]]


def _llm_api(generation: Generation, prompt_tokens: int) -> list[bytes]:
    """The whole text so far, and why it ended."""
    so_far = ["".join(generation["pieces"][: count + 1]) for count in range(len(generation["pieces"]))]
    reasons = _reasons(generation)
    return [_frame(text_output=text, finish_reason=reason) for text, reason in zip(so_far, reasons, strict=True)]


def _vllm(generation: Generation, prompt_tokens: int) -> list[bytes]:
    """The new text, why it ended, and counts; the last response counts the end token too."""
    pieces, reasons = generation["pieces"], _reasons(generation)
    ends = [reason == "stop" for reason in reasons]
    return [
        _frame(
            text_output=piece,
            finish_reason=reason,
            num_input_tokens=prompt_tokens,
            num_output_tokens=len(encode(piece)) + end,
        )
        for piece, reason, end in zip(pieces, reasons, ends, strict=True)
    ]


def _reasons(generation: Generation) -> list[str]:
    """The ``finish_reason`` of each response: Python's ``None`` as text while the answer goes on."""
    last = len(generation["pieces"]) - 1
    return [generation.get("finish", "None") if index == last else "None" for index in range(last + 1)]


def _frame(**outputs: Any) -> bytes:
    return frame(service_pb2.ModelStreamInferResponse(infer_response=response(**outputs)).SerializeToString())


_RESPONSES = {"token_level": _token_level, "ensemble": _ensemble, "llm_api": _llm_api, "vllm": _vllm}
