"""All asks there are, in the order in which they are made of a request that needs them."""

from __future__ import annotations

from typing import Any

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.exchange.check_guides import CheckGuides
from sidecar.exchange.claim import ClaimKey, EndClaim
from sidecar.exchange.direct import Direct
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.load import Load, PrepareContinued
from sidecar.exchange.look_up import LookUp
from sidecar.exchange.look_up_requests import LookUpRequests
from sidecar.exchange.note_refusal import NoteRefusal
from sidecar.exchange.plan import Prepare
from sidecar.exchange.reserve import Reserve
from sidecar.exchange.settle import Settle
from sidecar.exchange.store import Announce, Keep, Store

ASKS: tuple[type[Ask[Any]] | type[LastAsk], ...] = (
    ClaimKey,
    Direct,
    Prepare,
    Load,
    PrepareContinued,
    CheckGuides,
    Reserve,
    Announce,
    FetchImages,
    Store,
    LookUp,
    LookUpRequests,
    Settle,
    NoteRefusal,
    Keep,
    EndClaim,
)
