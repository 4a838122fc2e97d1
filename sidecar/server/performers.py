"""Who performs the asks of an exchange, and where: the one table of a worker."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from sidecar.egress.budget import UnlimitedBytes
from sidecar.egress.loader import ImageLoader
from sidecar.exchange.check_guides import CheckGuides
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.plan import Plan, Prepare
from sidecar.extproc.driver import Performers
from sidecar.killable import Pool
from sidecar.server import grammars
from sidecar.server.preparation import Preparation


def make_performers(
    preparation: Preparation, grammar_processes: Pool, images: ImageLoader, writers: Executor
) -> Performers:
    """The table, in the order in which the asks are made.

    ``preparation`` runs what makes a plan, ``grammar_processes`` what makes grammars, ``writers`` what writes images
    into a message.
    """

    async def prepare(ask: Prepare) -> Plan:
        return await preparation.run(ask.plan, ask.facts.request.body_bytes, ask.facts.request.client)

    async def check_guides(ask: CheckGuides) -> None:
        await grammars.check_guides(ask, grammar_processes)

    async def fetch_images(ask: FetchImages) -> bytes:
        async with images.load(ask.refs, UnlimitedBytes(), ask.client) as loaded:
            return await asyncio.get_running_loop().run_in_executor(writers, ask.body, loaded)

    return {Prepare: prepare, CheckGuides: check_guides, FetchImages: fetch_images}
