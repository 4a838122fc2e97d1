"""What every contract offers: tensor tables, the reading of requests and the writing of responses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .inputs import Inputs, Values
from .tensors import FP32, INT32, INT64, Tensor
from .vocabulary import Vocabulary

Finish = Literal["stop", "length"]

METRICS = (
    Tensor("kv_cache_alloc_new_blocks", INT32),
    Tensor("kv_cache_reused_blocks", INT32),
    Tensor("kv_cache_alloc_total_blocks", INT32),
    Tensor("arrival_time_ns", INT64),
    Tensor("first_scheduled_time_ns", INT64),
    Tensor("first_token_time_ns", INT64),
    Tensor("last_token_time_ns", INT64),
    Tensor("acceptance_rate", FP32),
    Tensor("total_accepted_draft_tokens", INT32),
    Tensor("total_draft_tokens", INT32),
    Tensor("num_input_tokens", INT32),
    Tensor("num_output_tokens", INT32),
)
"""Outputs about the request that the token-level and the ensemble contract have in common."""


@dataclass(frozen=True)
class Delta:
    """What one response tells: new ids, their natural log probabilities and the sum of all of them so far.

    ``finish`` is why the answer ends with these ids, ``None`` while it goes on. ``metrics`` are scalars under the
    names of the token-level contract.
    """

    ids: Sequence[int]
    log_probs: Sequence[float] = ()
    cumulative_log_prob: float = 0.0
    finish: Finish | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


class Writer(Protocol):
    """Writes the responses to one request."""

    def outputs(self, delta: Delta) -> dict[str, Any]:
        """The output tensors by name, as nested lists in their full shape."""


class Contract(Protocol):
    """One contract, set up for one model by ``parameters``, those of its ``config.pbtxt``.

    ``finish_with_data`` says that a response with data always carries the final flag; otherwise it may come by itself.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    finish_with_data: bool

    def __init__(self, vocabulary: Vocabulary, parameters: Mapping[str, str]) -> None: ...

    def read(self, values: Values) -> Values:
        """A request's inputs as token-level inputs.

        Raises:
            Rejected: the request is not one of this contract.
        """

    def writer(self, inputs: Inputs) -> Writer:
        """What writes the responses to the request with these token-level inputs."""


def counts(inputs: Inputs, delta: Delta) -> dict[str, int]:
    """The token counts that a request asked for; those of the output count the response alone."""
    counted = {}
    if inputs.scalar("return_num_input_tokens", False):
        counted["num_input_tokens"] = len(inputs.prompt_ids)
    if inputs.scalar("return_num_output_tokens", False):
        counted["num_output_tokens"] = len(delta.ids)
    return counted


def beside_the_answer(inputs: Inputs, delta: Delta) -> dict[str, Any]:
    """Log probabilities and counts, if a request asked for them, and metrics, all with a batch dimension."""
    outputs: dict[str, Any] = {}
    if inputs.scalar("return_log_probs", False):
        outputs = {"output_log_probs": [[delta.log_probs]], "cum_log_probs": [[delta.cumulative_log_prob]]}
    return outputs | {name: [[value]] for name, value in (counts(inputs, delta) | dict(delta.metrics)).items()}
