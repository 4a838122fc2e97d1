"""gRPC frames: any split of the bytes gives the same frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.backends.triton.frames import (
    FrameError,
    FrameReader,
    GrpcStatus,
    frame,
    parse_trailers,
    payload_of,
    status_of,
)
from tests.core.splits import split_at

payloads = st.lists(st.binary(max_size=300), max_size=8)


@given(payloads, st.lists(st.integers(0, 3000), max_size=12))
def test_any_split_gives_the_same_frames(messages: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, messages))
    reader = FrameReader()
    frames = [found for piece in split_at(stream, cuts) for found in reader.feed(piece)]
    assert frames == [*map(frame, messages)]
    assert [*map(payload_of, frames)] == messages
    assert not reader.rest


def test_a_cut_frame_is_known_to_be_partial() -> None:
    reader = FrameReader()
    assert reader.feed(frame(b"whole") + frame(b"cut")[:-1]) == [frame(b"whole")]
    assert reader.rest


def test_a_compressed_frame_is_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(b"\x01" + frame(b"x")[1:])


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (b"grpc-status:0\r\n", GrpcStatus(0, "")),
        (b"grpc-status: 13\r\ngrpc-message: boom%20mid\r\n", GrpcStatus(13, "boom mid")),
        (b"Grpc-Status:14\r\n", GrpcStatus(14, "")),
        (b"grpc-status:nonsense\r\n", GrpcStatus(2, "")),
        (b"other:1\r\n", None),
    ],
)
def test_trailers_tell_the_status(payload: bytes, status: GrpcStatus | None) -> None:
    assert parse_trailers(payload) == status


def test_headers_without_a_status_have_none() -> None:
    assert status_of({"content-type": "application/grpc"}) is None
