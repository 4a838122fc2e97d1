"""What the contracts that give text have in common: the reading of their responses.

Their outputs have the same names and meanings, as far as a model has them, so one decoder reads them all. What a
runtime does not tell is inferred: tokens are counted with our tokenizer, and an answer has met its limit when it has
as many tokens as were allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sidecar.backends.backend import FinishReason, Piece
from sidecar.backends.triton.contracts.contract import Generation, Vocabulary
from sidecar.backends.triton.contracts.running_count import RunningCount
from sidecar.backends.triton.contracts.tensors import first_bytes, first_count
from sidecar.backends.triton.errors import given_up
from sidecar.backends.triton.protocol import service_pb2
from sidecar.backends.triton.repeats import Varying

TEXT_OUTPUT = "text_output"
_REUSED_BLOCKS = {"kv_cache_reused_blocks", "kv_cache_reused_block"}
_READ = {TEXT_OUTPUT, "num_output_tokens", "num_input_tokens", "finish_reason"} | _REUSED_BLOCKS
_UNFINISHED = b"None"
_GIVEN_UP = {b"abort", b"cancelled", b"error", b"timeout"}
_BROKEN = "\ufffd"
_BROKEN_BYTES = _BROKEN.encode()
# A character whose last byte is missing is decoded to at most this many U+FFFD.
_MOST_UNFINISHED = 3


class TextDecoder:
    """Reads texts. ``cumulative`` responses carry the whole text so far, others what is new.

    Of a cumulative text, U+FFFD at the end waits: it may be a character that is not complete yet.
    """

    def __init__(
        self, generation: Generation, vocabulary: Vocabulary, *, cumulative: bool, tokens_per_block: int = 0
    ) -> None:
        self.finish_reason: FinishReason | None = None
        self.input_tokens: int | None = None
        self.cached_tokens = 0
        self.counted = True
        self.broken_characters = 0
        self._prompt_tokens = len(generation.prompt_ids)
        self._max_tokens = generation.max_tokens
        self._running = RunningCount(vocabulary.count)
        self._cumulative = cumulative
        self._tokens_per_block = tokens_per_block
        self._text_bytes = 0
        self._tokens = 0
        self._told_tokens = 0

    def feed(self, response: service_pb2.ModelInferResponse) -> Piece:
        """The text and count of the response, its outputs in any order.

        While the runtime tells no counts, a response with text counts as one token; ``end`` sets that right.

        Raises:
            BackendError: the runtime gave the generation up.
        """
        written, tokens = b"", 0
        blocks: int | None = None
        for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False):
            name = tensor.name
            if name == TEXT_OUTPUT:
                written = raw
            elif name == "num_output_tokens":
                self.counted = False
                tokens = first_count(tensor.datatype, raw)
            elif name == "num_input_tokens":
                # Every response tells it.
                self.input_tokens = first_count(tensor.datatype, raw)
            elif name == "finish_reason":
                self._finish(first_bytes(raw))
            elif name in _REUSED_BLOCKS:
                blocks = first_count(tensor.datatype, raw)
        if blocks is not None:
            self._count_cached(blocks)
        self._told_tokens = tokens
        return self._take(tokens, (written,))

    def varying(self, response: service_pb2.ModelInferResponse) -> Varying | None:
        """The text, where it is not the whole text so far, whose length would be another each time."""
        names = [tensor.name for tensor in response.outputs]
        if self._cumulative or names.count(TEXT_OUTPUT) != 1 or len(response.raw_output_contents) != len(names):
            return None
        place = names.index(TEXT_OUTPUT)
        size = len(response.raw_output_contents[place])
        ignored = [at for at, name in enumerate(names) if name not in _READ]
        return Varying(place, f"{size}s", ignored, partial(self._take, self._told_tokens)) if size else None

    def end(self) -> Piece:
        """No text: what a cumulative text still holds back is an unfinished character."""
        correction = self._running.total() - self._tokens if self.counted else 0
        self._tokens += correction
        if self.finish_reason is None:
            self.finish_reason = "length" if self._tokens >= self._max_tokens else "stop"
        return ("", correction)

    def _take(self, tokens: int, written: Sequence[bytes]) -> Piece:
        """The piece of a text as it was written, of which ``tokens`` were told."""
        text = self._new_text(first_bytes(written[0]))
        if self.counted and text:
            self._running.add(text)
            tokens = 1
        self._tokens += tokens
        return (text, tokens)

    def _new_text(self, data: bytes) -> str:
        if self._cumulative:
            end = _settled(data)
            data, self._text_bytes = data[self._text_bytes : end], max(self._text_bytes, end)
        text = data.decode(errors="replace")
        self.broken_characters += text.count(_BROKEN)
        return text

    def _finish(self, reason: bytes) -> None:
        if reason in _GIVEN_UP:
            raise given_up(reason.decode())
        if reason != _UNFINISHED:
            self.finish_reason = "length" if reason == b"length" else "stop"

    def _count_cached(self, blocks: int) -> None:
        # A block may reach past the prompt, and a request is never served from more than its prompt.
        self.cached_tokens = min(blocks * self._tokens_per_block, self.input_tokens or self._prompt_tokens)


def _settled(data: bytes) -> int:
    """The length of ``data`` without the U+FFFD at its end that may yet become a character."""
    end = len(data)
    for _ in range(_MOST_UNFINISHED):
        if not data.endswith(_BROKEN_BYTES, 0, end):
            break
        end -= len(_BROKEN_BYTES)
    return end
