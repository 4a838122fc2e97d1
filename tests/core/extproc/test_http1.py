"""The tunnel's HTTP/1.1 reader: what Envoy writes, split anywhere, and what it never writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.extproc.wires.http1 import Http1Error, ResponseReader
from tests.core.splits import split_at

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web+proto\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(pieces: list[bytes]) -> bytes:
    return HEAD + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


@given(
    st.lists(st.binary(max_size=200), max_size=6),
    st.lists(st.integers(0, 2000), max_size=12),
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]),
)
def test_any_split_gives_the_same_body(pieces: list[bytes], cuts: list[int], informational: bytes) -> None:
    reader = ResponseReader()
    body = b"".join(reader.feed(part) for part in split_at(informational + chunked(pieces), cuts))
    assert body == b"".join(pieces)
    assert reader.complete
    assert reader.status == 200
    assert reader.headers["content-type"] == "application/grpc-web+proto"


@given(st.binary(max_size=100), st.lists(st.integers(0, 200), max_size=6))
def test_a_content_length_ends_the_body(body: bytes, cuts: list[int]) -> None:
    reader = ResponseReader()
    response = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: %d\r\ngrpc-status: 14\r\n\r\n" % len(body) + body
    assert b"".join(reader.feed(part) for part in split_at(response, cuts)) == body
    assert (reader.status, reader.complete, reader.headers["grpc-status"]) == (503, True, "14")


@given(st.integers(1, 40))
def test_a_response_cut_short_is_not_complete(missing: int) -> None:
    reader = ResponseReader()
    reader.feed(chunked([b"some", b"chunks"])[:-missing])
    assert not reader.complete


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6))
def test_reads_of_one_chunk_each_give_the_same_body(pieces: list[bytes]) -> None:
    reader = ResponseReader()
    reader.feed(HEAD)
    assert [reader.feed(b"%x\r\n%b\r\n" % (len(piece), piece)) for piece in pieces] == pieces


def test_chunk_extensions_and_trailers_are_passed_over() -> None:
    reader = ResponseReader()
    assert reader.feed(HEAD + b"3;ext=1\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n") == b"abc"
    assert reader.complete


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        HEAD + b"xyz\r\n",
        HEAD + b"2\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"a" * 70_000,
    ],
)
def test_other_bytes_are_refused(garbage: bytes) -> None:
    with pytest.raises(Http1Error):
        ResponseReader().feed(garbage)
