"""The vocabulary of tensor tables."""

from collections.abc import Iterable
from typing import Any, NamedTuple

BOOL, BYTES, UINT8, INT32, INT64, UINT32, UINT64, FP16, FP32 = (
    "TYPE_BOOL",
    "TYPE_STRING",
    "TYPE_UINT8",
    "TYPE_INT32",
    "TYPE_INT64",
    "TYPE_UINT32",
    "TYPE_UINT64",
    "TYPE_FP16",
    "TYPE_FP32",
)


class Tensor(NamedTuple):
    """One input or output: its name, data type, and dims without the batch dimension."""

    name: str
    data_type: str
    dims: tuple[int, ...] = (1,)
    optional: bool = True


def required(name: str, data_type: str, dims: tuple[int, ...] = (1,)) -> Tensor:
    """An input that every request must have."""
    return Tensor(name, data_type, dims, optional=False)


def declare(config: Any, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> Any:
    """Add every tensor to a model's configuration; the body of ``auto_complete_config`` of the Python backend."""
    for tensor in inputs:
        config.add_input(
            {
                "name": tensor.name,
                "data_type": tensor.data_type,
                "dims": list(tensor.dims),
                "optional": tensor.optional,
            }
        )
    for tensor in outputs:
        config.add_output({"name": tensor.name, "data_type": tensor.data_type, "dims": list(tensor.dims)})
    return config
