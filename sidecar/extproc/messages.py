"""Builders for ext_proc's messages, in the form that FULL_DUPLEX_STREAMED body mode takes.

A response of our own is streamed as ``StreamedImmediateResponse``, which the packaged protos do not have: serialized
messages within each other are their tags, lengths and bytes.

Source: Envoy's ``envoy.service.ext_proc.v3`` (1.40). Header values go into ``raw_value`` because Envoy ignores
``value``; the append action is always given because its default appends. ``request_drain`` must never be set: its field
number in the packaged protos is another message's in Envoy 1.40.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from envoy.config.core.v3.base_pb2 import HeaderMap, HeaderValue, HeaderValueOption
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    CommonResponse,
    HeaderMutation,
    HeadersResponse,
    HttpHeaders,
    ImmediateResponse,
    ProcessingRequest,
    ProcessingResponse,
    StreamedBodyResponse,
    TrailersResponse,
)
from envoy.type.v3.http_status_pb2 import HttpStatus

from sidecar.extproc import by_hand
from sidecar.responses.reply import Reply

# One request-body message must stay within the listener's buffer limit.
_MAX_BODY_MESSAGE = 1 << 20
# Marks our own answers in %RESPONSE_CODE_DETAILS%; the Envoy configuration passes their bodies through by it.
DETAILS_PREFIX = "responses_"
# The filter's name, under which its attributes come, and the attribute that it is configured to send.
_FILTER = "envoy.filters.http.ext_proc"
_CONNECTION = "connection.id"
# ProcessingResponse.streamed_immediate_response; StreamedImmediateResponse.headers_response and body_response.
_STREAMED_IMMEDIATE = 0x5A
_ITS_HEADERS, _ITS_BODY = 0x0A, 0x12


def headers_of(header_map: HeaderMap) -> dict[str, str]:
    """A header map as a dictionary; names are lower-case as HTTP/2 has them, the last value of a name wins."""
    return {header.key: header.raw_value.decode("latin-1") for header in header_map.headers}


def connection_of(message: ProcessingRequest) -> int:
    """The number of the client's connection, which stands in a stream's first message; 0 where it was not sent."""
    if _FILTER not in message.attributes:
        return 0
    fields = message.attributes[_FILTER].fields
    return int(fields[_CONNECTION].number_value) if _CONNECTION in fields else 0


def request_headers(set_headers: Mapping[str, str] | None = None, remove: Iterable[str] = ()) -> ProcessingResponse:
    """The answer to ``request_headers``: Envoy goes on to the upstream."""
    return ProcessingResponse(request_headers=_headers_response(set_headers or {}, remove))


def request_body(data: bytes, *, end: bool, head: bytes = b"") -> Iterator[ProcessingResponse]:
    """The request body, ``data`` behind a short ``head``, in messages of at most 1 MiB; the last ends it if ``end``."""
    # Tens of megabytes where there are images: set in place and not joined, they are copied twice and not six times.
    stop = 0
    while stop < len(data) or head:
        start, stop = stop, stop + _MAX_BODY_MESSAGE - len(head)
        message = ProcessingResponse()
        streamed = message.request_body.response.body_mutation.streamed_response
        streamed.body = head + data[start:stop]
        streamed.end_of_stream = end and stop >= len(data)
        yield message
        head = b""


def response_headers(set_headers: Mapping[str, str] | None = None, remove: Iterable[str] = ()) -> ProcessingResponse:
    """The answer to ``response_headers``: the head goes to the client."""
    return ProcessingResponse(response_headers=_headers_response(set_headers or {}, remove))


def response_body(data: bytes, *, end: bool) -> ProcessingResponse:
    """A piece of the response body."""
    # Setting the innermost message in place takes a third of the time of nested constructors.
    message = ProcessingResponse()
    streamed = message.response_body.response.body_mutation.streamed_response
    streamed.body = data
    streamed.end_of_stream = end
    return message


def response_trailers(remove: Iterable[str] = ()) -> ProcessingResponse:
    """The answer to ``response_trailers``: the response ends."""
    return ProcessingResponse(
        response_trailers=TrailersResponse(header_mutation=HeaderMutation(remove_headers=list(remove)))
    )


def immediate(reply: Reply) -> ProcessingResponse:
    """A whole answer in place of the upstream's, possible while the response head is unanswered."""
    return ProcessingResponse(
        immediate_response=ImmediateResponse(
            status=HttpStatus(code=reply.status),
            headers=_mutation(reply.headers, ()),
            body=reply.body,
            details=DETAILS_PREFIX + reply.outcome,
        )
    )


def own_head(headers: Mapping[str, str]) -> bytes:
    """The head of a response of our own, status 200, in answer to ``request_headers``; serialized."""
    all_headers = {":status": "200", **headers}
    values = [HeaderValue(key=name, raw_value=value.encode("latin-1")) for name, value in all_headers.items()]
    return _streamed_immediate(_ITS_HEADERS, HttpHeaders(headers=HeaderMap(headers=values)).SerializeToString())


def own_end(data: bytes) -> bytes:
    """The last piece of the body of a response of our own; serialized."""
    return _streamed_immediate(_ITS_BODY, StreamedBodyResponse(body=data, end_of_stream=True).SerializeToString())


def _streamed_immediate(kind: int, member: bytes) -> bytes:
    return by_hand.within((_STREAMED_IMMEDIATE, kind), member)


def _headers_response(set_headers: Mapping[str, str], remove: Iterable[str]) -> HeadersResponse:
    return HeadersResponse(response=CommonResponse(header_mutation=_mutation(set_headers, remove)))


def _mutation(set_headers: Mapping[str, str], remove: Iterable[str]) -> HeaderMutation:
    return HeaderMutation(
        set_headers=[
            HeaderValueOption(
                header=HeaderValue(key=name, raw_value=value.encode("latin-1")),
                append_action=HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
            )
            for name, value in set_headers.items()
        ],
        remove_headers=list(remove),
    )
