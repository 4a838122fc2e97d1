"""Tensors on the wire: requests are built and output values read here, byte by byte.

Source: the KServe inference protocol, ``raw_input_contents`` and ``raw_output_contents``: numbers are little-endian,
each element of a BYTES tensor has four bytes of length in front.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence

from sidecar.backends.triton.contracts.contract import Generation
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2

_INT32_MAX = 2**31 - 1
_LENGTH_BYTES = 4


class InferRequest:
    """A ``ModelInferRequest`` as it grows. An input that the model does not have is left out."""

    def __init__(self, model: str, generation: Generation, inputs: Collection[str], batched: bool) -> None:
        """``inputs`` are those that the model has; ``batched`` models take a leading batch dimension."""
        self._message = service_pb2.ModelInferRequest(model_name=model, id=generation.request_id)
        # Without it a decoupled model's last response cannot be told from a stream that broke.
        self._message.parameters["triton_enable_empty_final_response"].bool_param = True
        self._inputs = inputs
        self._batch = (1,) if batched else ()

    def serialized(self) -> bytes:
        """The bytes that go on the wire."""
        return self._message.SerializeToString()

    def flag(self, *names: str) -> None:
        """Inputs that are true."""
        for name in names:
            self._add(name, "BOOL", b"\x01", (1,))

    def int32(self, name: str, value: int) -> None:
        """A number, lowered to what 32 bits hold: Triton would wrap it around."""
        self.int32s(name, [min(value, _INT32_MAX)], 1)

    def int32s(self, name: str, values: Sequence[int], *dims: int) -> None:
        """Numbers of 32 bits in the shape ``dims``."""
        self._add(name, "INT32", struct.pack(f"<{len(values)}i", *values), dims)

    def uint64(self, name: str, value: int) -> None:
        """An unsigned number of 64 bits."""
        self._add(name, "UINT64", struct.pack("<Q", value), (1,))

    def fp32(self, name: str, value: float) -> None:
        """A number of single precision."""
        self._add(name, "FP32", struct.pack("<f", value), (1,))

    def texts(self, name: str, *values: str) -> None:
        """Texts, as one row; no input at all where there is none."""
        if values:
            encoded = [value.encode() for value in values]
            raw = b"".join(len(value).to_bytes(_LENGTH_BYTES, "little") + value for value in encoded)
            self._add(name, "BYTES", raw, (len(values),))

    def _add(self, name: str, datatype: str, raw: bytes, dims: tuple[int, ...]) -> None:
        if name in self._inputs:
            self._message.inputs.add(name=name, datatype=datatype, shape=(*self._batch, *dims))
            self._message.raw_input_contents.append(raw)


def first_bytes(raw: bytes) -> bytes:
    """The first element of a BYTES tensor; empty when there is none."""
    return raw[_LENGTH_BYTES : _LENGTH_BYTES + int.from_bytes(raw[:_LENGTH_BYTES], "little")]


def first_count(datatype: str, raw: bytes) -> int:
    """The first element of a tensor as a count; 0 for anything that is none.

    TensorRT-LLM's LLM API model writes its counts as text (``"3"``, ``"3.0"``, ``"None"``).
    """
    if datatype == "BYTES":
        try:
            return max(0, int(float(first_bytes(raw))))
        except (ValueError, OverflowError):
            return 0
    return max(0, int.from_bytes(raw[:4], "little", signed=datatype == "INT32"))


def names(metadata: service_pb2.ModelMetadataResponse) -> tuple[frozenset[str], frozenset[str]]:
    """The names of a model's inputs and of its outputs."""
    return frozenset(tensor.name for tensor in metadata.inputs), frozenset(tensor.name for tensor in metadata.outputs)


def parameter(config: model_config_pb2.ModelConfig, name: str) -> str:
    """A parameter of a model's configuration; empty where it is missing or still a placeholder (``${name}``)."""
    value: str = config.parameters[name].string_value if name in config.parameters else ""
    return "" if value.startswith("${") else value


def tokens_per_block(config: model_config_pb2.ModelConfig) -> int:
    """The size of a KV cache block, as far as the operator has put it into the model's configuration; else 0."""
    value = parameter(config, "tokens_per_block")
    return int(value) if value.isdecimal() else 0
