"""One request's life inside a model: its inputs, its cancellation and its responses.

The behaviour follows TensorRT-LLM's backend: streamed responses carry the new ids only; without ``streaming`` one
response carries the prompt (unless ``exclude_input_in_output``) and all ids; a second request with ``stop`` and the
same request id ends the first.
"""

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from .tensors import OUTPUTS

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
_DTYPES = {tensor.name: pb_utils.triton_string_to_numpy(tensor.data_type) for tensor in OUTPUTS}


class Rejected(Exception):
    """A request that the model does not run; the message is for the client."""


class Inputs:
    """The input tensors of one request as flat Python lists.

    They are copied when the request arrives: Triton frees the tensors as soon as ``execute`` returns.
    """

    def __init__(self, request: Any) -> None:
        self._values: dict[str, list[Any]] = {
            tensor.name(): tensor.as_numpy().reshape(-1).tolist() for tensor in request.inputs()
        }

    def array(self, name: str) -> list[Any] | None:
        """All values of an input, or ``None`` when it was not sent."""
        return self._values.get(name)

    def scalar(self, name: str, default: Any = None) -> Any:
        """The only value of an input, text decoded, or ``default`` when it was not sent.

        Raises:
            Rejected: there is more than one value, or none.
        """
        values = self._values.get(name)
        if values is None:
            return default
        if len(values) != 1:
            raise Rejected(f"Expected a scalar tensor for tensor {name}")
        return values[0].decode() if isinstance(values[0], bytes) else values[0]

    def required(self, name: str) -> Any:
        """Like ``scalar``, for an input that must be there.

        Raises:
            Rejected: the input is missing or not a scalar.
        """
        value = self.scalar(name)
        if value is None:
            raise Rejected(f"A value is required for {name}")
        return value

    def word_list(self, name: str) -> list[list[int]]:
        """The words, as lists of ids, of an input of shape [2, n]: a row of ids, then a row of ends padded with -1."""
        values = self._values.get(name, [])
        ids, ends = values[: len(values) // 2], [end for end in values[len(values) // 2 :] if end != -1]
        return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def names(self) -> list[str]:
        """The names of all inputs that were sent."""
        return list(self._values)


class Generation:
    """An accepted request: what it asks for, whether its client still wants it, and the way back."""

    def __init__(self, request: Any, sender: Any, inputs: Inputs) -> None:
        self.arrival_ns = time.time_ns()
        self.request_id: str = request.request_id()
        self.inputs = inputs
        ids = inputs.array("input_ids")
        if not ids:
            raise Rejected("A value is required for input_ids")
        self.prompt_ids: list[int] = ids[: inputs.required("input_lengths")]
        self.output_limit: int = inputs.required("request_output_len")
        if self.output_limit < 1:
            raise Rejected("request_output_len must be above 0")
        self.end_id: int = inputs.scalar("end_id", -1)
        self.streaming: bool = inputs.scalar("streaming", False)
        self._sender = sender
        # Triton frees what stands behind the sender with the final flag; asking it afterwards crashes the server.
        self._sender_lock = threading.Lock()
        self._closed = False
        self._stopped = False
        self._ids: list[int] = []
        self._log_probs: list[float] = []
        self._cumulative_log_prob = 0.0

    def stop(self) -> None:
        """End the generation on the client's explicit wish."""
        self._stopped = True

    def cancelled(self) -> bool:
        """Whether the client has gone or asked to stop. Asks Triton each time, which takes some 50 microseconds.

        May be called from any thread, even after the end.
        """
        with self._sender_lock:
            return self._stopped or (not self._closed and self._sender.is_cancelled())

    def send(
        self,
        ids: Sequence[int],
        log_probs: Sequence[float] = (),
        final: bool = False,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Send new ids; with ``final`` they are the last and the response carries the final flag.

        ``metrics`` are further scalar outputs by name. Without ``streaming`` the ids wait for the last response.
        """
        self._cumulative_log_prob += sum(log_probs)
        if not self.streaming:
            self._ids += ids
            self._log_probs += log_probs
            if not final:
                return
            ids, log_probs = self._collected()
        self._respond(ids, log_probs, metrics or {}, final)

    def finish(self) -> None:
        """End with the final flag by itself, after the one response of a request that is not streamed."""
        if not self.streaming:
            self._respond(*self._collected(), {}, final=False)
        self.close()

    def close(self) -> None:
        """Send the final flag by itself."""
        self._transmit(None, final=True)

    def fail(self, message: str, code: int, final: bool = True) -> None:
        """Send an error response; ``code`` is a ``TritonError`` code. Without ``final``, ``close`` must follow."""
        self._transmit(_error(message, code), final)

    def _collected(self) -> tuple[list[int], list[float]]:
        prompt = [] if self.inputs.scalar("exclude_input_in_output", False) else self.prompt_ids
        return prompt + self._ids, self._log_probs

    def _respond(
        self, ids: Sequence[int], log_probs: Sequence[float], metrics: Mapping[str, float], final: bool
    ) -> None:
        outputs: dict[str, Any] = {"output_ids": [[ids]], "sequence_length": [[len(ids)]]}
        if self.inputs.scalar("return_log_probs", False):
            outputs |= {"output_log_probs": [[log_probs]], "cum_log_probs": [[self._cumulative_log_prob]]}
        if self.inputs.scalar("return_num_input_tokens", False):
            outputs["num_input_tokens"] = [[len(self.prompt_ids)]]
        if self.inputs.scalar("return_num_output_tokens", False):
            outputs["num_output_tokens"] = [[len(ids)]]
        outputs |= {name: [[value]] for name, value in metrics.items()}
        tensors = [pb_utils.Tensor(name, np.array(value, _DTYPES[name])) for name, value in outputs.items()]
        self._transmit(pb_utils.InferenceResponse(tensors), final)

    def _transmit(self, response: Any, final: bool) -> None:
        with self._sender_lock:
            self._closed = final
            self._sender.send(response, flags=FINAL if final else 0)


class Requests:
    """Turns Triton's requests into generations and knows those that run."""

    def __init__(self) -> None:
        self._by_id: weakref.WeakValueDictionary[str, Generation] = weakref.WeakValueDictionary()

    def accept(self, request: Any) -> Generation | None:
        """The generation that a request starts; ``None`` when it was refused, or asked to stop another one."""
        sender = request.get_response_sender()
        try:
            inputs = Inputs(request)
            if inputs.scalar("stop", False):
                self._stop(request.request_id())
                sender.send(flags=FINAL)
                return None
            generation = Generation(request, sender, inputs)
        except Rejected as rejection:
            sender.send(_error(str(rejection), pb_utils.TritonError.INVALID_ARG), flags=FINAL)
            return None
        self._by_id[generation.request_id] = generation
        return generation

    def _stop(self, request_id: str) -> None:
        if not request_id:
            raise Rejected("A request id must be provided for request cancellation")
        if running := self._by_id.get(request_id):
            running.stop()


def _error(message: str, code: int) -> Any:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code))
