"""``responses.sidecar.usage.v1.UsageFeed``: the ledger's usage records, one after another, to whoever may read them.

A reader gets a page from the store when it has taken the page before, so it holds up no writer, and what is in memory
has a bound however slow it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import grpc

from sidecar.admission.records import UnknownPlaceError, read_on
from sidecar.feed.messages import response_of
from sidecar.feed.usage_feed_pb2 import StreamRequest, StreamResponse
from sidecar.identity.identity import Identity
from sidecar.identity.presented import presented
from sidecar.identity.secret import Secret
from sidecar.responses.errors import ApiError
from sidecar.store import Store, StoreUnavailable

SERVICE = "responses.sidecar.usage.v1.UsageFeed"
SCOPE = "usage:read"
MOST_READERS = 16
"""How many streams a worker serves at a time."""

_PAGE = 200
_PAUSE_SECONDS = 1.0
_STATUSES = {"unauthorized": grpc.StatusCode.UNAUTHENTICATED, "forbidden": grpc.StatusCode.PERMISSION_DENIED}

Context: TypeAlias = "grpc.aio.ServicerContext[StreamRequest, StreamResponse]"


class Identifies(Protocol):
    """Tells who holds a credential."""

    async def identify(self, secret: Secret) -> Identity:
        """Raises :class:`ApiError` where nobody does, or that cannot be told now."""


class UsageFeed:
    """The service of one worker. ``currency`` is that of records without a price."""

    def __init__(self, store: Store, authenticator: Identifies, currency: str) -> None:
        self._store = store
        self._authenticator = authenticator
        self._currency = currency
        self._readers = 0

    def add_to(self, server: grpc.aio.Server) -> None:
        """Have ``server`` serve it."""
        method = grpc.unary_stream_rpc_method_handler(
            self.stream,
            request_deserializer=StreamRequest.FromString,
            response_serializer=StreamResponse.SerializeToString,
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Stream": method}),))

    async def stream(self, request: StreamRequest, context: Context) -> AsyncIterator[StreamResponse]:
        """The records after the request's cursor."""
        if self._readers >= MOST_READERS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MOST_READERS} streams are served already")
        self._readers += 1
        try:
            async for response in self._responses(request, context):
                yield response
        except ApiError as error:
            await context.abort(_STATUSES.get(error.code, grpc.StatusCode.UNAVAILABLE), error.message)
        except StoreUnavailable:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the ledger does not answer; go on from the last cursor")
        except UnknownPlaceError:
            await context.abort(
                grpc.StatusCode.OUT_OF_RANGE,
                "the record at the cursor is not in the ledger, and others after it may be missing: begin without one",
            )
        finally:
            self._readers -= 1

    async def _responses(self, request: StreamRequest, context: Context) -> AsyncIterator[StreamResponse]:
        secret = presented(_authorization(context), "")
        wanted = frozenset(request.organizations)
        cursor = request.cursor
        while True:
            # Before each page: a key may be revoked while its holder reads.
            (await self._authenticator.identify(secret)).require(SCOPE)
            page = await self._store.read(partial(read_on, after=cursor, most=_PAGE))
            for row in page:
                if not wanted or row.organization_id in wanted:
                    yield response_of(row, self._currency)
            if page:
                cursor = page[-1].id
                if wanted and page[-1].organization_id not in wanted:
                    yield StreamResponse(cursor=cursor)
            if len(page) < _PAGE:
                if not request.follow:
                    return
                await asyncio.sleep(_PAUSE_SECONDS)


def _authorization(context: Context) -> dict[str, Sequence[str]]:
    metadata = context.invocation_metadata() or ()
    return {"authorization": [str(value) for key, value in metadata if key == "authorization"]}
