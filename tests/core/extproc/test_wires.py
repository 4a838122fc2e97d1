"""A wire gives the bytes of the call, however Envoy cuts what the upstream sent into messages."""

from envoy.service.ext_proc.v3.external_processor_pb2 import HttpBody, ProcessingRequest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.extproc.wires.tunnel import TunnelWire
from tests.core.splits import split_at

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ngrpc-status: 0\r\n\r\n"
# Around the sizes at which the line before a chunk, or a length in a message, gets longer.
sizes = st.sampled_from([1, 2, 14, 15, 16, 17, 100, 110, 119, 120, 121, 122, 123, 127, 128, 254, 255, 256, 257, 300])
data = sizes.flatmap(lambda size: st.binary(min_size=size, max_size=size)) | st.sampled_from([b"\r\n", b"1\r\n\r\n"])


@given(st.lists(data, max_size=12), st.lists(st.integers(0, 3000), max_size=6), st.booleans(), st.data())
def test_any_messages_give_the_bytes_of_all_chunks(
    chunks: list[bytes], cuts: list[int], between_chunks: bool, upper: st.DataObject
) -> None:
    written = [HEAD]
    for chunk in chunks:
        form = upper.draw(st.sampled_from([b"%x\r\n%b\r\n"] * 5 + [b"%X\r\n%b\r\n", b"0%x\r\n%b\r\n"]))
        written.append(form % (len(chunk), chunk))
    written.append(b"0\r\n\r\n")
    ends = [sum(map(len, written[:count])) for count in range(1, len(written) + 1)]
    wire, found, end = TunnelWire(), b"", None
    for piece in split_at(b"".join(written), [*ends, *cuts] if between_chunks else cuts):
        message = ProcessingRequest(response_body=HttpBody(body=piece))
        read, ended = wire.receive(message.SerializeToString())
        found += read
        end = ended or end
    assert found == b"".join(chunks)
    assert end is not None
    assert (end.whole, end.http_status) == (True, 200)
