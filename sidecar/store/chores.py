"""Work that some worker of some node does for all, in the background: a little at a time, as long as there is any."""

from __future__ import annotations

import asyncio
import random
from typing import TypeVar

from sidecar.store.batch import Operation
from sidecar.store.errors import StoreUnavailable
from sidecar.store.store import Store

I = TypeVar("I")  # noqa: E741 - an item

_PAUSE_SECONDS = 60.0


async def repeat_forever(store: Store, operation: Operation[I, bool], item: I) -> None:
    """Have ``item`` performed again and again until cancelled: at once while more is left, else after a minute or so.

    The result of ``operation`` is whether more is left.
    """
    more = False
    while True:
        # The workers of all nodes come at different times.
        await asyncio.sleep(0 if more else _PAUSE_SECONDS * random.uniform(0.5, 1.5))
        try:
            more = await store.run(operation, item)
        except StoreUnavailable:
            # The store has said so in the log.
            more = False
