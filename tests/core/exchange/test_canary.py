"""A canary is a request like any other, and the smallest."""

from __future__ import annotations

import struct

from sidecar.backends.triton import errors
from sidecar.backends.triton.protocol import service_pb2
from sidecar.exchange.canary import canary_of
from tests.core import kit

ENTROPY, NOW = bytes(18), 1_800_000_000.0


def test_it_asks_for_one_token_of_a_model_that_is_refused_to_others() -> None:
    catalog = kit.catalog().with_outage("letters", errors.STARTING)
    canary = canary_of(catalog, "letters", entropy=ENTROPY, unix_time=NOW)
    assert canary is not None
    request = service_pb2.ModelInferRequest.FromString(canary.request)
    assert request.model_name == "tensorrt_llm"
    assert request.id.startswith("canary_")
    places = {tensor.name: place for place, tensor in enumerate(request.inputs)}
    assert struct.unpack("<i", request.raw_input_contents[places["request_output_len"]]) == (1,)


def test_its_reader_reads_what_comes_of_it() -> None:
    canary = canary_of(kit.catalog(), "letters", entropy=ENTROPY, unix_time=NOW)
    assert canary is not None
    pieces: list[tuple[str, int]] = []

    def take(text: str, tokens: int) -> bool:
        pieces.append((text, tokens))
        return False

    canary.reader.feed(kit.text("a") + kit.text("b"), take)
    assert pieces == [("a", 1)]


def test_a_model_may_take_none() -> None:
    catalog = kit.catalog(kit.model(context_length=2))
    assert canary_of(catalog, "letters", entropy=ENTROPY, unix_time=NOW) is None
