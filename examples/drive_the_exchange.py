"""Drives an exchange by hand: events go in, commands come out. No network, no clock, no thread.

The sidecar does just this, with Envoy's messages for events and commands. From a checkout in which ./dev has run once:
.venv/bin/python examples/drive_the_exchange.py
"""

import json
from collections.abc import Sequence
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from sidecar.backends.triton.contracts.ensemble import Ensemble
from sidecar.backends.triton.protocol import service_pb2
from sidecar.config.models import ModelConfig
from sidecar.exchange.catalog import Catalog, ServedModel
from sidecar.exchange.commands import CallUpstream, Command, SendBody
from sidecar.exchange.events import Answered, RequestComplete, UpstreamBytes, UpstreamEnd
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.generation.style import choose_style
from sidecar.prompts.chat_model import ChatModel
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import Tokenizer
from sidecar.surfaces import SURFACES

REQUEST = json.dumps({"model": "tiny", "instructions": "Be brief.", "input": "Hello?", "stream": True}).encode()
HEADERS = {":method": "POST", ":path": "/v1/infer/responses", "content-type": "application/json"}
TEMPLATE = "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}\n{% endfor %}<assistant>"
TRITON = (  # gRPC frames of ModelStreamInferResponse: two pieces of text, the mark of the last one, and the trailers.
    b"\0\0\0\0&\x12$*\x17\n\x0btext_output\x12\x05BYTES\x1a\x01\x012\t\x05\0\0\0Hello",
    b"\0\0\0\0)\x12'*\x17\n\x0btext_output\x12\x05BYTES\x1a\x01\x012\x0c\x08\0\0\0, world!",
    b'\0\0\0\0\x1f\x12\x1d"\x1b\n\x15triton_final_response\x12\x02\x08\x01' + b"\x80\0\0\0\x0fgrpc-status:0\r\n",
)


def make_model() -> ServedModel:
    """A model as a node's configuration makes it, but of a tokenizer that has a token for each byte and no file."""
    alphabet = {piece: index for index, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary = tokenizers.Tokenizer(models.BPE(alphabet, []))
    vocabulary.pre_tokenizer, vocabulary.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    settings = ModelConfig(name="tiny", triton_model="ensemble", tokenizer=Path("none"), context_length=100)
    renderer = PromptRenderer(ChatModel.of(Tokenizer(vocabulary, template_source=TEMPLATE)))
    contract = Ensemble(frozenset({"text_input", "max_tokens"}), batched=True, accumulates=False, tokens_per_block=0)
    return ServedModel(settings, renderer, choose_style(TEMPLATE, reasoning="auto", calls="auto"), contract=contract)


def show(event: str, exchange: Exchange, commands: Sequence[Command]) -> None:
    """Print what an event has led to."""
    print(f"\n{event} → {exchange.phase.__name__}")
    for command in commands:
        print(f"  {type(command).__name__}", "" if isinstance(command, SendBody | CallUpstream | Prepare) else command)
        if isinstance(command, CallUpstream):
            message = service_pb2.ModelInferRequest.FromString(command.body[5:])  # After the head of the gRPC frame.
            for tensor, raw in zip(message.inputs, message.raw_input_contents, strict=True):
                print(f"    {tensor.name} = {raw!r}")
        elif isinstance(command, SendBody):
            print("    " + command.decode().strip().replace("\n", "\n    "))


exchange = Exchange(SURFACES["node"], Catalog("my-node", 15.0, [make_model()]), [Prepare], entropy=bytes(18))
asked = exchange.handle(RequestComplete(HEADERS, REQUEST, len(REQUEST), head_at=0.0, unix_time=1.8e9, at=0.0))
show("RequestComplete", exchange, asked)
for ask in asked:  # An ask is performed by whoever drives the exchange; this one is a pure function.
    assert isinstance(ask, Prepare)
    show("Answered", exchange, exchange.handle(Answered(ask, ask.plan(), at=0.1)))
for at, data in enumerate(TRITON, start=1):
    show("UpstreamBytes", exchange, exchange.handle(UpstreamBytes(data, float(at))))
show("UpstreamEnd", exchange, exchange.handle(UpstreamEnd(whole=True, http_status=200, grpc=None, at=4.0)))
