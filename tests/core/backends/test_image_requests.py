"""A request with images: they are asked for, placed in order, and given to the model in its contract's form."""

from __future__ import annotations

import base64
import struct

import pytest

from sidecar.backends.triton.contracts import ensemble, llm_api, token_level, vllm
from sidecar.backends.triton.contracts.contract import UNBOUNDED, Contract
from sidecar.backends.triton.frames import FrameReader, payload_of
from sidecar.backends.triton.protocol import service_pb2
from sidecar.exchange.commands import CallUpstream
from sidecar.exchange.events import Abort, Answered, Tick
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.fetch_images import FetchImages
from sidecar.images.image import Image, ImageRef
from sidecar.responses.errors import ApiError
from tests.core import kit
from tests.core.backends.text_contracts import config, generation, names, sent

CAT = Image("image/png", b"a cat", 1, 1)
DOG = Image("image/jpeg", b"a dog", 1, 1)
CAT_TEXT, DOG_TEXT = (base64.b64encode(image.data).decode() for image in (CAT, DOG))
URLS = ("https://example.com/cat.png", "https://example.com/dog.jpg")


def metadata(inputs: str, images: str, shape: list[int]) -> service_pb2.ModelMetadataResponse:
    message = service_pb2.ModelMetadataResponse(name="m")
    for name in inputs.split():
        message.inputs.add(name=name, shape=[-1, 1])
    message.inputs.add(name=images, shape=shape)
    message.outputs.add(name="text_output")
    return message


@pytest.mark.parametrize(
    ("contract", "name", "texts"),
    [
        (
            ensemble.Ensemble(names("text_input image_url_input"), True, False, 0, max_images=2),
            "image_url_input",
            [f"data:image/jpeg;base64,{CAT_TEXT}", f"data:image/jpeg;base64,{DOG_TEXT}"],
        ),
        (
            llm_api.LlmApi(names("text_input image_url"), False, 0, max_images=2),
            "image_url",
            [f"data:image/png;base64,{CAT_TEXT}", f"data:image/jpeg;base64,{DOG_TEXT}"],
        ),
        (vllm.Vllm(names("text_input image"), False, max_images=2), "image", [CAT_TEXT, DOG_TEXT]),
    ],
    ids=["ensemble", "llm_api", "vllm"],
)
def test_each_contract_takes_images_in_its_form(contract: Contract, name: str, texts: list[str]) -> None:
    assert sent(contract, generation(images=(CAT, DOG)))[name] == texts
    assert name not in sent(contract, generation())


@pytest.mark.parametrize(
    ("recognise", "inputs", "images"),
    [
        (ensemble.recognise, "text_input max_tokens", "image_url_input"),
        (llm_api.recognise, "text_input sampling_param_top_p", "image_url"),
        (vllm.recognise, "text_input sampling_parameters", "image"),
    ],
    ids=["ensemble", "llm_api", "vllm"],
)
@pytest.mark.parametrize(("shape", "most"), [([-1, 1], 1), ([-1, -1], UNBOUNDED), ([-1], UNBOUNDED), ([4], 4)], ids=str)
def test_the_tensor_tells_how_many_images_it_takes(
    recognise: object, inputs: str, images: str, shape: list[int], most: int
) -> None:
    assert callable(recognise)
    assert recognise(metadata(inputs, images, shape), config()).max_images == most
    assert recognise(metadata(inputs, "another", shape), config()).max_images == 0


def test_ids_come_without_images() -> None:
    assert token_level.TokenLevel(kit.INPUTS, True, 0).max_images == 0


def asked(exchange: Exchange) -> FetchImages:
    """The images that ``exchange`` asks for."""
    (fetch,) = kit.handle(exchange, kit.image_request(*URLS))
    assert isinstance(fetch, FetchImages)
    return fetch


def test_images_are_asked_for_before_the_call() -> None:
    exchange = kit.exchange(kit.image_model())
    fetch = asked(exchange)
    refs = [ImageRef(f"input[0].content[{index}]", url) for index, url in enumerate(URLS)]
    assert fetch.refs == refs
    (call,) = exchange.handle(Answered(fetch, fetch.body((CAT, DOG)), 101.0))
    assert isinstance(call, CallUpstream)
    (whole,) = FrameReader().feed(call.body)
    message = service_pb2.ModelInferRequest.FromString(payload_of(whole))
    tensor = [tensor.name for tensor in message.inputs].index("image")
    encoded = [text.encode() for text in (CAT_TEXT, DOG_TEXT)]
    assert message.inputs[tensor].shape == [2]
    assert message.raw_input_contents[tensor] == b"".join(struct.pack("<I", len(text)) + text for text in encoded)


def test_the_models_silence_begins_when_its_images_are_there() -> None:
    exchange = kit.exchange(kit.image_model())
    fetch = asked(exchange)
    assert exchange.handle(Tick(300.0)) == []
    exchange.handle(Answered(fetch, fetch.body((CAT, DOG)), 300.0))
    assert exchange.handle(Tick(309.0)) == []
    assert kit.reply(exchange.handle(Tick(310.0))).status == 503


def test_an_image_that_cannot_be_had_ends_the_exchange() -> None:
    exchange = kit.exchange(kit.image_model())
    fetch = asked(exchange)
    error = ApiError("egress_denied", "An image's host has no public address.", "input[0].content[1]")
    reply = kit.reply(exchange.handle(Answered(fetch, error, 101.0)))
    assert (reply.status, exchange.done, exchange.report.outcome) == (403, True, "egress_denied")


def test_images_that_come_after_the_end_change_nothing() -> None:
    exchange = kit.exchange(kit.image_model())
    fetch = asked(exchange)
    exchange.handle(Abort(ApiError("node_unavailable", "restarting")))
    assert exchange.handle(Answered(fetch, fetch.body((CAT, DOG)), 101.0)) == []


@pytest.mark.parametrize(
    ("most", "message", "param"),
    [
        (0, "This model takes text only, no images.", "input[0].content[0]"),
        (1, "This model takes at most 1 image in a request.", "input[0].content[1]"),
    ],
)
def test_more_images_than_the_contract_takes_are_refused(most: int, message: str, param: str) -> None:
    reply = kit.reply(kit.handle(kit.exchange(kit.image_model(most)), kit.image_request(*URLS)))
    assert reply.status == 400
    assert f'"message":"{message}"'.encode() in reply.body
    assert f'"param":"{param}"'.encode() in reply.body


def test_what_images_hold_is_not_shown() -> None:
    shown = repr((ImageRef("input", "data:image/png;base64,secret"), Image("image/png", b"secret", 1, 1)))
    assert "secret" not in shown
