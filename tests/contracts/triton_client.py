"""A raw gRPC client of the token-level contract, for tests that talk to Triton themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2, service_pb2_grpc

_NUMPY_TYPES = {"BOOL": np.bool_, "INT32": np.int32, "INT64": np.int64, "UINT64": np.uint64, "FP32": np.float32}
# Triton's data type and numpy's, by input; those not named here are BYTES.
_INT32, _FP32, _UINT64, _BOOL = "INT32", "FP32", "UINT64", "BOOL"
INPUT_TYPES = {
    **dict.fromkeys(
        ("input_ids", "input_lengths", "request_output_len", "end_id", "pad_id", "stop_words_list", "bad_words_list"),
        _INT32,
    ),
    **dict.fromkeys(("runtime_top_k", "beam_width", "min_tokens", "num_return_sequences"), _INT32),
    **dict.fromkeys(("temperature", "runtime_top_p", "repetition_penalty", "presence_penalty"), _FP32),
    **dict.fromkeys(("frequency_penalty", "embedding_bias"), _FP32),
    **dict.fromkeys(("seed", "lora_task_id"), _UINT64),
    **dict.fromkeys(("streaming", "stop", "exclude_input_in_output", "return_log_probs", "return_perf_metrics"), _BOOL),
    **dict.fromkeys(("return_num_input_tokens", "return_num_output_tokens", "return_context_logits"), _BOOL),
}


@dataclass(frozen=True)
class Response:
    """One message of a stream: output tensors by name with their batch dimension, the final flag, an error."""

    outputs: dict[str, np.ndarray]
    final: bool
    error: str

    @property
    def ids(self) -> list[int]:
        return self.outputs["output_ids"].reshape(-1).tolist() if "output_ids" in self.outputs else []


@dataclass
class Answer:
    """A whole stream."""

    responses: list[Response] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        return [id_ for response in self.responses for id_ in response.ids]

    @property
    def pieces(self) -> list[list[int]]:
        return [response.ids for response in self.responses if response.outputs]

    @property
    def error(self) -> str:
        return "".join(response.error for response in self.responses)

    @property
    def final(self) -> bool:
        """The last message, and no other, carries the final flag."""
        return [response.final for response in self.responses] == [False] * (len(self.responses) - 1) + [True]


class Stream:
    """A running request."""

    def __init__(self, call: grpc.aio.StreamStreamCall) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[Response]:
        while (message := await self._call.read()) is not grpc.aio.EOF:
            yield _response(message)

    async def first(self) -> Response:
        return _response(await self._call.read())

    async def answer(self) -> Answer:
        return Answer([response async for response in self])

    def cancel(self) -> None:
        self._call.cancel()


class TritonClient:
    """A connection to one server."""

    def __init__(self, grpc_port: int) -> None:
        self._channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{grpc_port}", options=[("grpc.max_receive_message_length", -1)]
        )
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    async def __aenter__(self) -> TritonClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    def stream(
        self, model: str, ids: Iterable[int], output_limit: int, *, request_id: str = "", **inputs: object
    ) -> Stream:
        """Start a streamed request; inputs are named as the tensors, scalars as plain values."""
        ids = list(ids)
        inputs = {
            "input_ids": ids,
            "input_lengths": len(ids),
            "request_output_len": output_limit,
            "streaming": True,
            **inputs,
        }
        request = service_pb2.ModelInferRequest(model_name=model, id=request_id)
        request.parameters["triton_enable_empty_final_response"].bool_param = True
        for name, value in inputs.items():
            _add_input(request, name, value)
        return Stream(self.stub.ModelStreamInfer(iter([request])))

    async def answer(self, model: str, ids: Iterable[int], output_limit: int, **inputs: object) -> Answer:
        """The whole answer of a request."""
        return await self.stream(model, ids, output_limit, request_id="", **inputs).answer()


def _add_input(request: service_pb2.ModelInferRequest, name: str, value: object) -> None:
    data_type = INPUT_TYPES.get(name, "BYTES")
    if data_type == "BYTES":
        encoded = str(value).encode()
        shape, raw = [1, 1], len(encoded).to_bytes(4, "little") + encoded
    else:
        array: NDArray[Any] = np.atleast_1d(np.array(value, dtype=_NUMPY_TYPES[data_type]))
        shape, raw = [1, *array.shape], array.tobytes()
    request.inputs.add(name=name, datatype=data_type, shape=shape)
    request.raw_input_contents.append(raw)


def _response(message: service_pb2.ModelStreamInferResponse) -> Response:
    infer = message.infer_response
    outputs = {
        output.name: np.frombuffer(raw, dtype=_NUMPY_TYPES[output.datatype]).reshape(tuple(output.shape))
        for output, raw in zip(infer.outputs, infer.raw_output_contents, strict=True)
    }
    return Response(outputs, infer.parameters["triton_final_response"].bool_param, message.error_message)
