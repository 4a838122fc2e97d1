"""What is read and written by hand is what protobuf reads and writes."""

from __future__ import annotations

import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import HttpBody, HttpHeaders, HttpTrailers, ProcessingRequest
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from sidecar.extproc import by_hand, messages

# Where a length takes one byte more, by itself or by what stands around it.
EDGES = sorted({size + around for size in (0, 128, 16_384, 2_097_152) for around in range(-14, 3) if size + around > 0})


def piece(body: bytes, end: bool = False) -> ProcessingRequest:
    return ProcessingRequest(response_body=HttpBody(body=body, end_of_stream=end))


@pytest.mark.parametrize("size", EDGES)
def test_a_response_body_is_written_as_protobuf_writes_it(size: int) -> None:
    data = bytes(size)
    assert by_hand.response_body(data) == messages.response_body(data, end=False).SerializeToString()


@pytest.mark.parametrize("size", EDGES)
def test_a_body_is_read(size: int) -> None:
    assert by_hand.body_of(piece(b"x" * size).SerializeToString()) == b"x" * size


def with_metadata() -> ProcessingRequest:
    message = piece(b"body")
    message.metadata_context.filter_metadata["some"].CopyFrom(Struct())
    return message


@pytest.mark.parametrize(
    "message",
    [
        piece(b"the last", end=True),
        piece(b"", end=True),
        piece(b""),
        with_metadata(),
        ProcessingRequest(request_body=HttpBody(body=b"of the request")),
        ProcessingRequest(response_headers=HttpHeaders(end_of_stream=True)),
        ProcessingRequest(response_trailers=HttpTrailers()),
        ProcessingRequest(),
    ],
)
def test_every_other_message_is_left_to_protobuf(message: ProcessingRequest) -> None:
    assert by_hand.body_of(message.SerializeToString()) is None


nearly = st.builds(
    lambda message, at, byte: message[:at] + bytes([byte]) + message[at + 1 :],
    st.builds(piece, st.binary(max_size=300), st.booleans()).map(lambda message: message.SerializeToString()),
    st.integers(0, 12),
    st.integers(0, 255),
)


@given(st.one_of(nearly, st.binary(max_size=30).map(lambda rest: b"\x2a" + rest)))
def test_whatever_is_read_protobuf_reads_too(message: bytes) -> None:
    body = by_hand.body_of(message)
    if body is None:
        return
    try:
        read = ProcessingRequest.FromString(message)
    except DecodeError:
        pytest.fail("protobuf does not read it")
    assert (read.response_body.body, read.response_body.end_of_stream) == (body, False)
    assert read.WhichOneof("request") == "response_body"
