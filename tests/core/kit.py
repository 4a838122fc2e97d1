"""An exchange to test with: a model that spells letters, and Triton's stream written by hand."""

import base64
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.backends.triton.contracts.vllm import Vllm
from sidecar.backends.triton.frames import TRAILERS_FLAG, GrpcStatus, frame
from sidecar.backends.triton.protocol import service_pb2
from sidecar.config.model import RequestLimits
from sidecar.config.models import ModelConfig
from sidecar.exchange.catalog import Catalog, Served, ServedModel
from sidecar.exchange.check_guides import CheckGuides
from sidecar.exchange.commands import CallUpstream, Command, Finish, SendBody, SendHead
from sidecar.exchange.events import Answered, Event, RequestComplete, UpstreamEnd
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.plan import Prepare
from sidecar.generation.style import Style
from sidecar.guidance.engine import guide_faults
from sidecar.guidance.guides import Guide, note
from sidecar.images.image import ImageRef
from sidecar.prompts.renderer import Prompt
from sidecar.responses.errors import ApiError
from sidecar.responses.items import InputMessage
from sidecar.responses.parts import InputImage
from sidecar.responses.reply import Reply
from sidecar.responses.request import ReasoningEffort, ResponsesRequest
from sidecar.surfaces import SURFACES
from sidecar.surfaces.surface import Surface

END = 2
INPUTS = frozenset({"input_ids", "input_lengths", "request_output_len", "streaming", "end_id", "seed", "temperature"})
CREATE = {":method": "POST", ":path": "/v1/infer/responses"}
OK_TRAILERS = b"grpc-status:0\r\n"
# One white pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==")
# Byte n of UTF-8 is the id n + 100.
FIRST_BYTE = 100


class ByteDetokenizer:
    """Ids of single bytes back to whole characters."""

    def __init__(self) -> None:
        self.held = b""

    def feed(self, ids: Sequence[int]) -> str:
        self.held += bytes(token - FIRST_BYTE for token in ids)
        for end in range(len(self.held), max(-1, len(self.held) - 4), -1):
            try:
                text = self.held[:end].decode()
            except UnicodeDecodeError:
                continue
            self.held = self.held[end:]
            return text
        return ""

    def end(self) -> str:
        held, self.held = self.held, b""
        return held.decode(errors="replace")


class ByteRenderer:
    """Renders every request to the same number of prompt ids."""

    end_ids = (END,)
    end_tokens = ("<end>",)

    def __init__(self, prompt_tokens: int) -> None:
        self.prompt_tokens = prompt_tokens

    def render(self, request: object, *, guided: bool = False, **_: object) -> Prompt:
        applied: ReasoningEffort | None = "none" if guided else None
        return Prompt(ids=[7] * self.prompt_tokens, text="", runtime_text="prompt", applied_effort=applied)

    def detokenizer(self) -> ByteDetokenizer:
        return ByteDetokenizer()

    def count(self, text: str) -> int:
        return len(text.encode())


class ImageRenderer(ByteRenderer):
    """Renders a request whose first item holds nothing but images."""

    def render(self, request: object, *, guided: bool = False, **_: object) -> Prompt:
        assert isinstance(request, ResponsesRequest)
        (message,) = request.input
        assert isinstance(message, InputMessage)
        images = [
            ImageRef(f"input[0].content[{index}]", part.image_url)
            for index, part in enumerate(message.content)
            if isinstance(part, InputImage)
        ]
        return replace(super().render(request), images=images)


def model(prompt_tokens: int = 5, **changes: Any) -> ServedModel:
    """A model of which any setting, or anything made of its settings, is changed."""
    settings: dict[str, Any] = {
        "name": "letters",
        "triton_model": "tensorrt_llm",
        "tokenizer": "/nowhere",
        "context_length": 100,
        "limits": RequestLimits(max_request_bytes=1000),
        "first_token_timeout": 10.0,
        "token_timeout": 5.0,
    }
    made: dict[str, Any] = {
        "renderer": ByteRenderer(prompt_tokens),
        "style": Style(None, None),
        "contract": TokenLevel(INPUTS, batched=True, tokens_per_block=0),
        "created": 0,
        "notes": (),
    }
    made |= {name: changes.pop(name) for name in made.keys() & changes.keys()}
    return ServedModel(ModelConfig(**(settings | changes)), **made)


def image_model(max_images: int = 2) -> ServedModel:
    """A model behind the vLLM contract that takes images."""
    inputs = frozenset({"text_input", "sampling_parameters", "image"})
    return model(renderer=ImageRenderer(5), contract=Vllm(inputs, batched=False, max_images=max_images))


def catalog(*models: Served) -> Catalog:
    return Catalog("n1", 3.0, models or (model(),))


def exchange(served: ServedModel | None = None, surface: Surface = SURFACES["node"]) -> Exchange:
    return Exchange(surface, catalog(served or model()), (Prepare, CheckGuides, FetchImages), entropy=bytes(range(18)))


def handle(of: Exchange, event: Event) -> list[Command]:
    """What ``event`` brings, once the request has been prepared and its schemas looked at, if it asks for that."""
    commands = of.handle(event)
    while commands and isinstance(commands[-1], Prepare | CheckGuides):
        ask = commands[-1]
        result: object
        try:
            if isinstance(ask, Prepare):
                result = ask.plan()
            else:
                result = None
                check(ask.guides)
        except ApiError as error:
            result = error
        assert isinstance(event, RequestComplete)
        commands = of.handle(Answered(ask, result, event.at))
    return commands


def check(guides: Sequence[Guide]) -> None:
    """Look at ``guides``, as the processes of a worker do; raises :class:`ApiError` for one that cannot guide."""
    note(guides, guide_faults([guide.document for guide in guides]))


def request(head_at: float = 100.0, **body: Any) -> RequestComplete:
    headers = {**CREATE, "content-type": "application/json", "x-request-id": "r-1", "cookie": "secret"}
    whole = {"model": "letters", "input": "hi", **body}
    encoded = json.dumps(whole).encode()
    return RequestComplete(headers, encoded, len(encoded), head_at, 1_800_000_000.5, head_at)


def image_request(*urls: str) -> RequestComplete:
    """A request with an image for each of ``urls``."""
    content = [{"type": "input_image", "image_url": url} for url in urls]
    return request(input=[{"role": "user", "content": content}])


def response(ids: Iterable[int], final: bool = False) -> bytes:
    """One frame of Triton's stream that holds ``ids``."""
    message = service_pb2.ModelStreamInferResponse()
    ids = list(ids)
    if ids:
        message.infer_response.outputs.add(name="output_ids", datatype="INT32", shape=[1, 1, len(ids)])
        message.infer_response.raw_output_contents.append(struct.pack(f"<{len(ids)}i", *ids))
    message.infer_response.parameters["triton_final_response"].bool_param = final
    return frame(message.SerializeToString())


def text(piece: str) -> bytes:
    """One frame that holds the ids of ``piece``."""
    return response(byte + FIRST_BYTE for byte in piece.encode())


def failure(words: str) -> bytes:
    """One frame in which Triton reports a failure."""
    return frame(service_pb2.ModelStreamInferResponse(error_message=words).SerializeToString())


def trailers(payload: bytes = OK_TRAILERS) -> bytes:
    """The gRPC-Web trailers frame."""
    return bytes([TRAILERS_FLAG]) + frame(payload)[1:]


def final() -> bytes:
    """The frames that end a generation well."""
    return response([], final=True) + trailers()


def whole_end(at: float = 102.0) -> UpstreamEnd:
    return UpstreamEnd(True, 200, None, at)


def broken_end(at: float = 102.0, http_status: int | None = 200, grpc: GrpcStatus | None = None) -> UpstreamEnd:
    return UpstreamEnd(False, http_status, grpc, at)


def play(
    pieces: Iterable[bytes], end: UpstreamEnd | None = None, of: Exchange | None = None, **body: Any
) -> tuple[Exchange, list[Command]]:
    """Run an exchange over Triton's bytes; the commands after the upstream call."""
    played = of or exchange()
    (call,) = handle(played, request(**body))
    assert isinstance(call, CallUpstream), call
    commands = [command for piece in pieces for command in upstream(played, piece)]
    return played, commands + played.handle(end or whole_end())


def upstream(of: Exchange, data: bytes, at: float = 101.0) -> list[Command]:
    """What bytes of the upstream bring, on the per-token path."""
    commands = of.upstream(data, at)
    if isinstance(commands, bytes):
        return [SendBody(commands)] if commands else []
    return commands


def sent(commands: Iterable[Command]) -> bytes:
    """The body bytes in ``commands``."""
    return b"".join(command for command in commands if isinstance(command, SendBody))


def shape(commands: Iterable[Command]) -> list[str]:
    """The names of the commands, runs of body bytes as one."""
    names = [type(command).__name__ for command in commands]
    return [name for at, name in enumerate(names) if not (at and name == names[at - 1] == SendBody.__name__)]


def reply(commands: Sequence[Command]) -> Reply:
    """The one reply that ``commands`` are."""
    (only,) = commands
    assert isinstance(only, Reply), only
    return only


WHOLE_ANSWER = [SendHead.__name__, SendBody.__name__, Finish.__name__]
