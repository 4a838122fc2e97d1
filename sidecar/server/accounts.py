"""Who may, how much, and what it cost: what one worker needs for that, as the configuration has it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import NamedTuple

from sidecar.admission.admission import Admission
from sidecar.admission.bookkeeper import Bookkeeper
from sidecar.admission.checkpoint import Checkpoint
from sidecar.admission.directives import configured
from sidecar.admission.ledger import Ledger
from sidecar.admission.lessee import Lessee
from sidecar.admission.limits import Limits
from sidecar.admission.prices import Price, PriceList
from sidecar.admission.recovery import Recovery
from sidecar.admission.spool import Spool, has_spool
from sidecar.admission.terms import TermsReader
from sidecar.admission.waiting_room import WaitingRoom
from sidecar.config.admission import PriceConfig
from sidecar.config.load import ConfigError, read_master_keys, read_store_url
from sidecar.config.models import Config
from sidecar.identity.authenticator import Authenticator
from sidecar.identity.ext_authz import AuthorizationService
from sidecar.identity.trusted import Trusted
from sidecar.responses.ids import ulid
from sidecar.server.directing import Directing
from sidecar.server.idempotency import Idempotency
from sidecar.server.listeners import listen
from sidecar.server.patience import Patience
from sidecar.server.request_log import RequestLog
from sidecar.server.storing import Storing
from sidecar.store import Store, Told
from sidecar.stored.idempotency import IdempotencyKeys
from sidecar.stored.master_keys import MasterKeys
from sidecar.stored.responses import StoredResponses
from sidecar.surfaces.surface import Surface


class Accounts(NamedTuple):
    """What Envoy asks about each request before it lets it in, what exchanges ask before they begin, and what is
    done with the log of requests, with directives and, where there are any, with stored responses and idempotency
    keys."""

    store: Store
    authenticator: Authenticator
    authorization: AuthorizationService
    admission: Admission
    log: RequestLog
    directing: Directing
    storing: Storing | None
    idempotency: Idempotency | None
    patience: Patience


@asynccontextmanager
async def accounts_of(
    config: Config, surfaces: Mapping[str, Surface], life: str, told: Told
) -> AsyncIterator[Accounts | None]:
    """The accounts of the process that ``life`` names; ``None`` where the configuration has none.

    What the configuration has served beside Envoy is served meanwhile. ``told`` hears how long the store takes.

    Raises:
        ConfigError: the store's settings, its master key or an address cannot be used.
    """
    if not config.accounts:
        yield None
        return
    masters = MasterKeys(read_master_keys(config.stored)) if config.stores else None
    store = Store(read_store_url(config.store), told=told)
    patience, storing, idempotency = Patience(), None, None
    if masters is not None:
        storing = Storing(StoredResponses(store, masters), patience)
    directing = Directing(store, configured(config.directives), stale=config.store.when_down == "spool")
    authenticator = Authenticator(store, config.identity, stale=config.store.when_down == "spool")
    trusted = Trusted(config.identity.trusted) if config.identity.trusted else None
    try:
        async with keep_accounts(config, store, life) as admission, listen(config, store, authenticator):
            if masters is not None:
                idempotency = Idempotency(IdempotencyKeys(store, masters, life, config.node), admission, patience)
            authorization = AuthorizationService(surfaces, authenticator, trusted)
            log = RequestLog(store)
            yield Accounts(
                store, authenticator, authorization, admission, log, directing, storing, idempotency, patience
            )
    finally:
        await store.close()


@asynccontextmanager
async def keep_accounts(config: Config, store: Store, life: str) -> AsyncIterator[Admission]:
    """Admission to the models of ``config``, for the process that ``life`` names.

    Meanwhile it settles what others have left. At the end all of its own is settled, or left where others settle it.

    Raises:
        ConfigError: no file can be made in ``store.state``.
    """
    try:
        checkpoint = Checkpoint(config.store.state, life)
    except OSError as error:
        raise ConfigError(f"store.state: {error}") from error
    seconds = config.admission.lease_seconds
    lessee = Lessee(life, seconds) if seconds else None
    ledger, state = make_ledger(config, lessee), config.store.state
    spool = Spool(state, make_ledger(config), store, ledger) if has_spool(config.store) else None
    books = Bookkeeper(store, ledger, checkpoint, spool if config.store.when_down == "spool" else None)
    recovery = Recovery(store, ledger, checkpoint, config.node, spool, lessee=lessee)
    recovering = asyncio.create_task(recovery.run_forever())
    try:
        yield Admission(books, WaitingRoom(config.admission.queue_seconds))
    finally:
        recovering.cancel()
        await asyncio.wait((recovering,))
        await books.close()
        await recovery.leave()
        if spool is not None:
            await spool.close()


def make_ledger(config: Config, lessee: Lessee | None = None) -> Ledger:
    """The ledger with the prices and default limits of ``config``; a process needs one for a store."""
    prices = {model.name: [_price(price) for price in model.prices] for model in config.models}
    return Ledger(PriceList(prices, config.currency), TermsReader(default_limits(config)), lessee=lessee)


def default_limits(config: Config) -> Limits:
    """What an organization may have where nothing else is said."""
    return Limits(**config.admission.defaults.model_dump())


def new_life() -> str:
    """A name for this process that no other ever has."""
    return ulid(time.time_ns() // 1_000_000, os.urandom(10))


def _price(price: PriceConfig) -> Price:
    cached = price.input if price.cached_input is None else price.cached_input
    per_search = Decimal(price.per_search or 0)
    return Price(price.since, Decimal(price.input), Decimal(cached), Decimal(price.output), per_search)
