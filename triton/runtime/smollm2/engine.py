"""llama.cpp, through xllamacpp: ids in, ids out.

xllamacpp is llama.cpp's HTTP server as a library: requests and answers look like those of its completions endpoint.
Two things need care. It opens that HTTP server in any case, so the server is locked. And it thinks in text: the ids of
tokens that end inside a character are not told, only their number, once the character is complete; they are worked out
from its bytes.
"""

import secrets
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xllamacpp

from .spelling import Spelling

# The prompt is read in pieces of this many tokens, between which a request can be cancelled and others go on: most of a
# second on one thread. With half as many a prompt takes half as long again.
_PROMPT_PIECE = 64
# At most this many tokens wait for a character of UTF-8 to be complete.
_HELD_TOKENS = 3


class EngineError(Exception):
    """The engine refused or failed; ``client`` says that the request is to blame."""

    def __init__(self, message: str, client: bool) -> None:
        super().__init__(message)
        self.client = client


@dataclass(frozen=True)
class Progress:
    """What happened since the last report: new ids, none while the prompt is read, with natural log probabilities.

    Also whether the engine ended, and how many of the prompt's ids were in its cache.
    """

    ids: Sequence[int]
    log_probs: Sequence[float]
    ended: bool
    cached_ids: int


class Engine:
    """A loaded model with a number of slots; ``generate`` may be called from as many threads at a time."""

    def __init__(self, weights: Path, tokenizer: Path, slots: int, context: int, threads: int) -> None:
        self._spelling = Spelling(tokenizer)
        self._context = context
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights)
        parameters.n_parallel = slots
        parameters.n_ctx = slots * (context + _HELD_TOKENS)
        parameters.n_batch = parameters.n_ubatch = _PROMPT_PIECE
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        parameters.cache_ram_mib = 0
        parameters.verbosity = -1
        # Nobody else is to use the HTTP server.
        parameters.api_keys = [secrets.token_hex(32)]
        parameters.ui = False
        parameters.endpoint_slots = False
        parameters.endpoint_props = False
        parameters.endpoint_metrics = False
        parameters.cors_origins = ""
        self._server = xllamacpp.Server(parameters)

    def generate(
        self,
        prompt_ids: Sequence[int],
        limit: int,
        *,
        end_id: int,
        parameters: dict[str, Any],
        take: Callable[[Progress], bool],
    ) -> None:
        """Generate until ``limit`` ids, the model's own end, or until ``take`` returns false.

        ``take`` is called with each token and between pieces of the prompt. The model's end counts only when it is
        ``end_id``.

        Raises:
            EngineError: the engine refused or failed.
        """
        request = {
            "prompt": list(prompt_ids),
            # The last character must become complete for its ids to be told.
            "max_tokens": limit + _HELD_TOKENS,
            "ignore_eos": end_id != self._spelling.end_id,
            # Penalties look at the whole sequence.
            "repeat_last_n": self._context,
            "logprobs": 1,
            "stream": True,
            "timings_per_token": True,
            "return_progress": True,
            **parameters,
        }
        silent_ends: Set[int] = frozenset()
        if "grammar" in parameters:
            # LLGuidance ends a text with a token of its choice, which is not the model's end and not for the client.
            request["ignore_eos"] = False
            silent_ends = self._spelling.other_special_ids
        reader = _Reader(self._spelling, silent_ends, take)
        self._server.handle_completions(request, reader.receive)
        if reader.failure:
            raise reader.failure


class _Reader:
    """Turns the chunks of one answer into progress."""

    def __init__(self, spelling: Spelling, silent_ends: Set[int], take: Callable[[Progress], bool]) -> None:
        self.failure: Exception | None = None
        self._spelling = spelling
        self._silent_ends = silent_ends
        self._take = take
        self._told = 0

    def receive(self, chunk: dict[str, Any]) -> bool:
        """Take a chunk; true ends the generation. The engine swallows exceptions, so they are kept."""
        try:
            return not self._take(self._progress(chunk))
        except Exception as failure:
            self.failure = failure
            return True

    def _progress(self, chunk: dict[str, Any]) -> Progress:
        if error := chunk.get("error"):
            raise EngineError(error["message"], client=error["code"] < 500)
        timings = chunk.get("timings", {})
        choice = chunk["choices"][0]
        told = (choice["logprobs"] or {"content": []})["content"]
        told = [token for token in told if token["id"] not in self._silent_ends]
        ids = [token["id"] for token in told]
        log_probs = [token["logprob"] for token in told]
        if told:
            held = timings["predicted_n"] - self._told - len(told)
            if held:
                ids[-1:-1] = self._spelling.ids_before(ids[-1], bytes(told[-1]["bytes"]), held)
                # Nor are their probabilities told: that of the last stands for the whole character.
                log_probs[-1:-1] = [0.0] * held
            self._told += len(ids)
        return Progress(ids, log_probs, choice["finish_reason"] == "stop", timings.get("cache_n", 0))
