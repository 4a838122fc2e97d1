"""Who performs the asks of an exchange, and where: the one table of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Executor
from typing import Any

from sidecar.admission.admission import Admission
from sidecar.admission.refused import Refusal
from sidecar.config.models import ImageLimits
from sidecar.egress.budget import UnlimitedBytes
from sidecar.egress.loader import ImageLoader
from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.check_guides import CheckGuides
from sidecar.exchange.claim import ClaimKey, EndClaim
from sidecar.exchange.direct import Direct
from sidecar.exchange.earlier import Continued
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.load import Load, PrepareContinued
from sidecar.exchange.look_up import LookUp
from sidecar.exchange.look_up_requests import LookUpRequests
from sidecar.exchange.note_refusal import NoteRefusal
from sidecar.exchange.order import ASKS
from sidecar.exchange.plan import Prepare
from sidecar.exchange.planned import Plan
from sidecar.exchange.reserve import Reserve, Reserved
from sidecar.exchange.settle import Settle
from sidecar.exchange.store import Announce, Keep, Store
from sidecar.extproc.driver import Done, Performer, Performers
from sidecar.killable import Pool
from sidecar.server import grammars
from sidecar.server.directing import Directing
from sidecar.server.idempotency import Idempotency
from sidecar.server.preparation import Preparation
from sidecar.server.request_log import RequestLog
from sidecar.server.storing import Storing


def make_performers(
    preparation: Preparation[Prepare, Plan | Continued],
    grammar_processes: Pool,
    admission: Admission | None,
    images: ImageLoader,
    writers: Executor,
    *,
    storing: Storing | None = None,
    log: RequestLog | None = None,
    directing: Directing | None = None,
    idempotency: Idempotency | None = None,
    limits: ImageLimits,
    worker: str,
) -> Performers:
    """The table, in the order in which the asks are made.

    ``preparation`` runs what makes a plan, ``grammar_processes`` what makes grammars, ``writers`` what writes images
    into a message, ``storing`` what is done with stored responses, ``idempotency`` what with idempotency keys, ``log``
    what with the log of requests, ``directing`` tells directives, where there are any. ``limits`` are those of images,
    ``worker`` is the life of this process. Without ``admission`` everybody is admitted, and nothing is accounted for.
    """

    def prepare(ask: Prepare) -> Awaitable[Plan | Continued] | Done[Plan | Continued]:
        earlier = ask.earlier.size if ask.earlier is not None else 0
        return preparation.run(ask, ask.facts.request.body_bytes + earlier, ask.facts.request.client)

    def prepare_continued(ask: PrepareContinued) -> Awaitable[Plan | Continued] | Done[Plan | Continued]:
        return prepare(ask.prepare)

    async def check_guides(ask: CheckGuides) -> None:
        await grammars.check_guides(ask, grammar_processes)

    async def fetch_images(ask: FetchImages) -> bytes:
        reserved = ask.reserved
        async with images.load(ask.refs, reserved.images if reserved else UnlimitedBytes(), ask.client) as loaded:
            if admission is not None and reserved is not None and reserved.images.is_limited:
                admission.images_fetched(reserved.slot, reserved.request.id, reserved.images.used)
            return await asyncio.get_running_loop().run_in_executor(writers, ask.body, loaded)

    performers: dict[type[Ask[Any]] | type[LastAsk], Performer] = {
        Prepare: prepare,
        CheckGuides: check_guides,
        FetchImages: fetch_images,
    }
    if admission is not None:

        async def reserve(ask: Reserve) -> Reserved:
            request = ask.request(worker, limits)
            made = await admission.reserve(request)
            return Reserved.of(request, made.slot, made.admitted)

        async def settle(ask: Settle) -> None:
            reserved = ask.reserved
            await admission.settle(reserved.slot, ask.settlement(), reserved.request.organization_id)

        performers |= {Reserve: reserve, Settle: settle}
    if log is not None:

        async def note_refusal(ask: NoteRefusal) -> None:
            await log.note(Refusal(ask.reserve.request(worker, limits), ask.code))

        performers |= {NoteRefusal: note_refusal, LookUpRequests: log.look_up}
    if directing is not None:
        performers |= {Direct: directing.direct}
    if storing is not None:
        performers |= {
            Load: storing.load,
            PrepareContinued: prepare_continued,
            Announce: storing.announce,
            Store: storing.store,
            LookUp: storing.look_up,
            Keep: storing.keep,
        }
    if idempotency is not None:
        performers |= {ClaimKey: idempotency.claim, EndClaim: idempotency.end}
    return {kind: performers[kind] for kind in ASKS if kind in performers}
