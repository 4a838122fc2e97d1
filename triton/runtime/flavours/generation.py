"""One request's life inside a model: its inputs, its cancellation and its responses.

The behaviour follows TensorRT-LLM's backend: streamed responses are about the new ids only; without ``streaming`` one
response is about the prompt (unless ``exclude_input_in_output``) and all ids; a second request with ``stop`` and the
same request id ends the first. How requests are read and responses written is up to the model's contract.
"""

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from .contract import Contract, Delta, Finish
from .inputs import Inputs, Rejected, Values, values_of

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class Generation:
    """An accepted request: what it asks for, whether its client still wants it, and the way back.

    ``sent`` are the inputs as they came, ``inputs`` the same as token-level inputs.
    """

    def __init__(self, request: Any, sender: Any, contract: Contract, sent: Values) -> None:
        self.arrival_ns = time.time_ns()
        self.request_id: str = request.request_id()
        self.sent = sent
        self.inputs = inputs = Inputs(contract.read(sent))
        self.prompt_ids = inputs.prompt_ids
        self.output_limit: int = inputs.required("request_output_len")
        if self.output_limit < 1:
            raise Rejected("request_output_len must be above 0")
        self.end_id: int = inputs.scalar("end_id", -1)
        self.streaming: bool = inputs.scalar("streaming", False)
        self._contract = contract
        self._writer = contract.writer(inputs)
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
        finish: Finish | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Send new ids; with ``finish`` they are the last and the response carries the final flag.

        ``metrics`` are further scalar outputs by their token-level names. Without ``streaming`` the ids wait for the
        last response.
        """
        self._cumulative_log_prob += sum(log_probs)
        if not self.streaming:
            self._ids += ids
            self._log_probs += log_probs
            if finish is None:
                return
            ids, log_probs = self._collected()
        self._respond(ids, log_probs, finish, metrics or {}, final=finish is not None)

    def finish(self, finish: Finish) -> None:
        """End without new ids, as the contract does: with a last response about the end, or the final flag alone."""
        if self._contract.finish_with_data or not self.streaming:
            ids, log_probs = ([], []) if self.streaming else self._collected()
            self._respond(ids, log_probs, finish, {}, final=self._contract.finish_with_data)
        if not self._contract.finish_with_data:
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
        self,
        ids: Sequence[int],
        log_probs: Sequence[float],
        finish: Finish | None,
        metrics: Mapping[str, float],
        final: bool,
    ) -> None:
        delta = Delta(ids, log_probs, self._cumulative_log_prob, finish, metrics)
        tensors = [_tensor(self._contract, name, value) for name, value in self._writer.outputs(delta).items()]
        self._transmit(pb_utils.InferenceResponse(tensors), final)

    def _transmit(self, response: Any, final: bool) -> None:
        with self._sender_lock:
            self._closed = final
            self._sender.send(response, flags=FINAL if final else 0)


class Requests:
    """Turns Triton's requests into generations and knows those that run."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._by_id: weakref.WeakValueDictionary[str, Generation] = weakref.WeakValueDictionary()

    def accept(self, request: Any) -> Generation | None:
        """The generation that a request starts; ``None`` when it was refused, or asked to stop another one."""
        sender = request.get_response_sender()
        sent = values_of(request)
        try:
            if Inputs(sent).scalar("stop", False):
                self._stop(request.request_id())
                sender.send(flags=FINAL)
                return None
            generation = Generation(request, sender, self._contract, sent)
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


def _tensor(contract: Contract, name: str, value: Any) -> Any:
    data_type = next(tensor.data_type for tensor in contract.outputs if tensor.name == name)
    # Text goes out as it is, whatever type the tensor was declared with: the LLM API model writes numbers as text.
    array = np.array(value, dtype=np.object_ if _holds_text(value) else pb_utils.triton_string_to_numpy(data_type))
    return pb_utils.Tensor(name, array)


def _holds_text(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, bytes)


def _error(message: str, code: int) -> Any:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code))
