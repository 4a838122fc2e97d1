"""Performs the asks about requests that were made before, and notes those that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from sidecar.admission.receipts import Log, read_log, read_receipt
from sidecar.admission.refused import Refusal, RefusedLog
from sidecar.exchange.look_up_requests import LookUpRequests, no_such_request
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.store import Store, StoreUnavailable

Found = TypeVar("Found")


class RequestLog:
    """The log of requests in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._refused = RefusedLog(store)

    async def note(self, refusal: Refusal) -> None:
        """Have a refusal stand in the log."""
        await self._refused.note(refusal)

    async def look_up(self, ask: LookUpRequests) -> Reply:
        """The answer of a request about others: of its own project and environment alone."""
        caller = ask.caller
        log = Log(caller.organization, caller.project, caller.environment)
        if not ask.id:
            return Reply.json(await self._read(lambda connection: read_log(connection, log, ask.page)))
        receipt = await self._read(lambda connection: read_receipt(connection, log, ask.id))
        if receipt is None:
            raise no_such_request(ask.id)
        return Reply.json(receipt)

    async def _read(self, query: Callable[[Connection], Found]) -> Found:
        try:
            return await self._store.read(query)
        except StoreUnavailable:
            raise ApiError("node_unavailable", "The log of requests does not answer; try again.") from None
