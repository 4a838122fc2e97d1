"""Performs the asks about stored responses, and says in the API's words what comes of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sidecar.exchange.earlier import Earlier
from sidecar.exchange.load import Load
from sidecar.exchange.look_up import LookUp, not_found
from sidecar.exchange.store import Announce, Keep, Store
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.responses.wording import shown
from sidecar.server.patience import Patience
from sidecar.store import StoreUnavailable
from sidecar.stored.chain import NotStored, StillMade, TooLong
from sidecar.stored.master_keys import KeyUnknown
from sidecar.stored.responses import Forbidden, StoredResponses
from sidecar.stored.seals import Place
from sidecar.surfaces.endpoints import Operation

_log = logging.getLogger(__name__)


class Storing:
    """The performers over one store's responses."""

    def __init__(self, stored: StoredResponses, patience: Patience) -> None:
        self._stored = stored
        self._patience = patience
        self._forgetting = set[asyncio.Task[None]]()

    async def look_at_keys(self) -> None:
        """Say in the log what the store holds that no master key here opens; nothing where it does not answer."""
        with suppress(StoreUnavailable):
            for master, number in await self._stored.unopened():
                words = "%d data keys are wrapped by the master key %s, which is not configured: what their teams store"
                _log.error(f"{words} can neither be read nor continued here", number, master)

    async def load(self, ask: Load) -> Earlier:
        """The conversation."""
        with _in_words(ask.previous_id, "previous_response_id"):
            return Earlier(await self._stored.conversation(ask.owner, ask.previous_id))

    async def announce(self, ask: Announce) -> None:
        """Go on where the response may be stored."""
        with _in_words(ask.place.response_id, "store"):
            if ask.stream:
                await self._stored.announce(ask.place)
            else:
                await self._stored.check_allowed(ask.place.owner)

    async def store(self, ask: Store) -> bool:
        """Whether the response is stored. One that cannot be is given to its client all the same."""
        try:
            return await self._stored.keep(ask.record)
        except (StoreUnavailable, KeyUnknown) as error:
            _log.error("%s could not be stored: %s", ask.record.place.response_id, error)
            self._forget(ask.record.place)
            return False
        except asyncio.CancelledError:
            # It took too long, or nobody waits for it any more.
            self._forget(ask.record.place)
            raise

    def _forget(self, place: Place) -> None:
        """What is not said to be stored must not be there, though the store may have taken it without an answer."""

        async def remove() -> None:
            with suppress(NotStored):
                await self._stored.remove(place.owner, place.response_id)

        removing = self._patience.carry_through(remove, f"the removal of {place.response_id}")
        self._forgetting.add(task := asyncio.create_task(removing))
        task.add_done_callback(self._forgetting.discard)

    async def keep(self, ask: Keep) -> None:
        """Store, or withdraw, as soon as the store answers; for two minutes at most."""
        record = ask.record

        async def keep() -> None:
            if record is None:
                await self._stored.withdraw(ask.response_id)
            else:
                await self._stored.keep(record)

        await self._patience.carry_through(keep, ask.response_id)

    async def look_up(self, ask: LookUp) -> Reply:
        """The answer of a request about a response."""
        with _in_words(ask.id, None):
            match ask.operation:
                case Operation.RETRIEVE_RESPONSE:
                    return await self._retrieve(ask)
                case Operation.DELETE_RESPONSE:
                    await self._stored.remove(ask.owner, ask.id)
                    return Reply.json({"id": ask.id, "object": "response", "deleted": True})
                case Operation.LIST_INPUT_ITEMS:
                    return _json(await self._stored.input_items(ask.owner, ask.id, ask.page))
        raise AssertionError(f"{ask.operation} is not about a stored response")

    async def _retrieve(self, ask: LookUp) -> Reply:
        try:
            return _json(await self._stored.response(ask.owner, ask.id))
        except StillMade:
            return Reply.json({"id": ask.id, "object": "response", "status": "in_progress"})


def _json(body: bytes) -> Reply:
    return Reply(200, {"content-type": "application/json"}, body)


@contextmanager
def _in_words(id_: str, param: str | None) -> Iterator[None]:
    """Say what goes wrong as an :class:`ApiError` about the response ``id_``, which the request named by ``param``."""
    try:
        yield
    except NotStored:
        error = not_found(id_)
        error.param = param
        raise error from None
    except StillMade:
        message = f"The response {shown(id_)} is still being made; try again shortly."
        raise ApiError("response_in_progress", message, param) from None
    except TooLong:
        message = "The conversation is too long to be continued; begin a new one."
        raise ApiError("context_length_exceeded", message, param) from None
    except Forbidden:
        message = f"Zero data retention is required here: '{param}' needs responses that are stored."
        raise ApiError("policy_denied", message, param) from None
    except KeyUnknown as error:
        _log.error("%s cannot be opened: %s", id_, error)
        raise ApiError("node_unavailable", "Stored responses cannot be opened here at the moment.") from None
    except StoreUnavailable:
        raise ApiError("node_unavailable", "The store of responses does not answer; try again.") from None
