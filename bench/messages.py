"""The gRPC messages of a token-level Triton model: answers built once and sent many times.

Sources: Triton's ``grpc_service.proto``, the tensors of TensorRT-LLM's ``tensorrt_llm`` model, gRPC over HTTP/2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sidecar.backends.triton.protocol import SERVICE
from sidecar.backends.triton.protocol.model_config_pb2 import ModelConfig
from sidecar.backends.triton.protocol.service_pb2 import (
    ModelConfigResponse,
    ModelMetadataResponse,
    ModelStreamInferResponse,
)

STREAM_INFER = SERVICE + "ModelStreamInfer"
_MODEL = "bench"
LIVE = b"\x08\x01"
"""``ServerLiveResponse`` of a server that lives, and ``ModelReadyResponse`` of a model that is ready."""

INPUTS = {
    "input_ids": ("INT32", [-1]),
    "input_lengths": ("INT32", [1]),
    "request_output_len": ("INT32", [1]),
    "end_id": ("INT32", [1]),
    "pad_id": ("INT32", [1]),
    "stop_words_list": ("INT32", [2, -1]),
    "temperature": ("FP32", [1]),
    "runtime_top_k": ("INT32", [1]),
    "runtime_top_p": ("FP32", [1]),
    "seed": ("UINT64", [1]),
    "streaming": ("BOOL", [1]),
}
OUTPUTS = {"output_ids": ("INT32", [-1, -1]), "sequence_length": ("INT32", [-1])}


class Unframer:
    """Cuts gRPC messages (5 bytes of prefix, then the message) out of any split of the bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that ``data`` completes, without prefix."""
        self._buffer += data
        while len(self._buffer) >= 5:
            end = 5 + int.from_bytes(self._buffer[1:5])
            if len(self._buffer) < end:
                return
            message = bytes(self._buffer[5:end])
            del self._buffer[:end]
            yield message


def framed(message: bytes) -> bytes:
    """A message with its gRPC prefix, uncompressed."""
    return struct.pack(">BL", 0, len(message)) + message


def token_response(model: str, token_id: int) -> bytes:
    """A framed response with one token: ``output_ids`` [1, 1, 1] and ``sequence_length`` [1, 1]."""
    response = ModelStreamInferResponse()
    answer = response.infer_response
    answer.model_name, answer.model_version = model, "1"
    answer.parameters["triton_final_response"].bool_param = False
    for name, shape, value in (("output_ids", [1, 1, 1], token_id), ("sequence_length", [1, 1], 1)):
        answer.outputs.add(name=name, datatype="INT32", shape=shape)
        answer.raw_output_contents.append(struct.pack("<i", value))
    return framed(response.SerializeToString())


def final_response(model: str) -> bytes:
    """The framed empty response that says that no more will come."""
    response = ModelStreamInferResponse()
    response.infer_response.model_name, response.infer_response.model_version = model, "1"
    response.infer_response.parameters["triton_final_response"].bool_param = True
    return framed(response.SerializeToString())


def unary_responses() -> dict[str, bytes]:
    """The framed answers of the unary methods by path: health, and what discovery asks about a model."""
    metadata = ModelMetadataResponse(name=_MODEL)
    config = ModelConfig(max_batch_size=256)
    config.model_transaction_policy.decoupled = True
    for tensors, described in ((INPUTS, metadata.inputs), (OUTPUTS, metadata.outputs)):
        for name, (datatype, dims) in tensors.items():
            described.add(name=name, datatype=datatype, shape=[-1, *dims])
    return {
        SERVICE + "ModelMetadata": framed(metadata.SerializeToString()),
        SERVICE + "ModelConfig": framed(ModelConfigResponse(config=config).SerializeToString()),
        SERVICE + "ServerLive": framed(LIVE),
        SERVICE + "ModelReady": framed(LIVE),
    }
