"""Generations on a real Triton through the sidecar's own contract objects: discovered, requested, decoded."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc

from sidecar.backends.backend import Piece
from sidecar.backends.triton import errors
from sidecar.backends.triton.client import discover
from sidecar.backends.triton.contracts.contract import Contract, Decoder, Generation
from sidecar.backends.triton.protocol import SERVICE, service_pb2
from sidecar.prompts.tokenizer import Tokenizer

_numbers = itertools.count()


def chat(question: str) -> str:
    """The prompt for one user turn, as the CPU model's template writes it."""
    return (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )


def script(*steps: Any) -> str:
    """The prompt that makes the scripted model play ``steps``."""
    return f"script:{json.dumps(steps)}"


@dataclass(frozen=True)
class Answer:
    """A whole generation: its texts, the tokens told for it, and what its decoder knows."""

    texts: list[str]
    tokens: int
    decoder: Decoder

    @property
    def text(self) -> str:
        return "".join(self.texts)


class Running:
    """A generation under way."""

    def __init__(self, generation: Generation, decoder: Decoder, call: grpc.aio.StreamStreamCall) -> None:
        self.generation = generation
        self.decoder = decoder
        self._call = call

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """The pieces; raises ``ApiError`` where Triton reports a failure."""
        final = False
        async for message in self._call:
            if message.error_message:
                raise errors.classify_message(message.error_message)
            final = message.infer_response.parameters["triton_final_response"].bool_param
            yield self.decoder.feed(message.infer_response)
        assert final, "the last response is marked"
        yield self.decoder.end()

    async def answer(self) -> Answer:
        pieces = [piece async for piece in self]
        return Answer([text for text, _ in pieces if text], sum(tokens for _, tokens in pieces), self.decoder)

    def cancel(self) -> None:
        self._call.cancel()


class Speaker:
    """One model behind one contract."""

    def __init__(self, model: str, contract: Contract, vocabulary: Tokenizer, channel: grpc.aio.Channel) -> None:
        self.contract = contract
        self._model = model
        self._vocabulary = vocabulary
        # Requests are sent as the contract has written them.
        self._stream_infer = channel.stream_stream(
            SERVICE + "ModelStreamInfer", response_deserializer=service_pb2.ModelStreamInferResponse.FromString
        )

    @classmethod
    async def find(cls, address: str, model: str, vocabulary: Tokenizer, channel: grpc.aio.Channel) -> Speaker:
        return cls(model, await discover(address, model), vocabulary, channel)

    def start(self, prompt: str, **changes: Any) -> Running:
        """Start a generation; ``changes`` are members of ``Generation``."""
        values: dict[str, Any] = {
            "request_id": f"contract-{next(_numbers)}",
            "prompt_ids": self._vocabulary.encode(prompt),
            "prompt_text": self._vocabulary.runtime_text(prompt),
            "max_tokens": 200,
            "temperature": 1.0,
            "top_p": 1.0,
            "seed": 7,
            "end_ids": self._vocabulary.eos_ids,
        }
        generation = Generation(**{**values, **changes})
        call = self._stream_infer(iter([self.contract.request(self._model, generation)]))
        return Running(generation, self.contract.decoder(generation, self._vocabulary), call)

    async def ask(self, prompt: str, **changes: Any) -> Answer:
        """A whole generation."""
        return await self.start(prompt, **changes).answer()
