"""One generation over gRPC, for no client: it is over with its first token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from http import HTTPStatus

import grpc

from sidecar.backends.failure import BackendError
from sidecar.backends.triton import errors
from sidecar.backends.triton.client import CHANNEL_OPTIONS
from sidecar.backends.triton.frames import GrpcStatus, frame
from sidecar.backends.triton.protocol import SERVICE
from sidecar.backends.triton.reader import TritonReader

# For so long the rest of an answer is read, which nobody needs.
_END_SECONDS = 1.0


async def first_token(target: str, request: bytes, reader: TritonReader, seconds: float) -> None:
    """Wait until a model has generated something.

    ``target`` is gRPC's name of the server, ``host:port`` or ``unix:PATH``; ``request`` a serialized
    ``ModelInferRequest``, what comes of it is given to ``reader``. It may take so many ``seconds``.

    Raises:
        ApiError: a ``BackendError``, as a request of a client's would meet it.
    """
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        # Without serializers messages are bytes.
        call = channel.stream_stream(SERVICE + "ModelStreamInfer")(_once(request), timeout=seconds)
        messages = aiter(call)
        try:
            await _read(messages, reader)
        except grpc.aio.AioRpcError as error:
            raise _failure_of(error.code(), error.details() or "") from error
        # Triton dies by a fault of its own (SIGSEGV) where calls are cancelled as they end, which this one is about to.
        with suppress(TimeoutError, grpc.aio.AioRpcError):
            async with asyncio.timeout(_END_SECONDS):
                async for _ in messages:
                    pass


def _failure_of(code: grpc.StatusCode, details: str) -> BackendError:
    status = GrpcStatus(code.value[0], details)
    failure = errors.classify_end(None, status)
    # In words of the library's own, which names addresses.
    unreachable = code is grpc.StatusCode.UNAVAILABLE and failure.failure == "failed"
    return errors.classify_end(HTTPStatus.SERVICE_UNAVAILABLE, status) if unreachable else failure


async def _once(request: bytes) -> AsyncIterable[bytes]:
    yield request


async def _read(messages: AsyncIterator[bytes], reader: TritonReader) -> None:
    """Read until something was generated, or to an end without anything."""
    generated = False

    def take(text: str, tokens: int) -> bool:
        nonlocal generated
        generated = generated or bool(text) or tokens > 0
        return not generated

    async for message in messages:
        reader.feed(frame(message), take)
        if generated:
            return
    # A model may have nothing to say; then all of that has to be there.
    reader.end(True, None, GrpcStatus(0, ""))
