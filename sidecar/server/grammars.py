"""The processes that make grammars of clients' schemas, to see whether it can be done."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sidecar.exchange.check_guides import CheckGuides
from sidecar.fairness import QueueFullError
from sidecar.guidance.engine import guide_faults, prepare
from sidecar.guidance.guides import Guide, note, portions
from sidecar.killable import CrashedError, OverrunError, Pool
from sidecar.responses.errors import ApiError

# Two, so that one dear schema does not hold up everybody else's.
_PROCESSES = 2
# Ten times what the dearest of those within the limits takes.
_MEMORY = 256 * 1024 * 1024
# Of processor time; the dearest takes one.
_SECONDS = 15.0

_log = logging.getLogger(__name__)


def grammar_processes() -> Pool:
    """The processes of one worker."""
    return Pool(_PROCESSES, memory=_MEMORY, prepare=prepare)


async def check_guides(ask: CheckGuides, processes: Pool) -> None:
    """Perform ``ask``; other clients have their turns between portions of many schemas.

    Raises:
        ApiError: ``invalid_request``: a schema cannot guide, or takes too long; ``capacity_unavailable``.
    """
    for portion in portions(ask.guides):
        documents = [guide.document for guide in portion]
        try:
            faults = await processes.run(guide_faults, documents, seconds=_SECONDS, owner=ask.client)
        except OverrunError:
            raise _blamed(portion).refusal("to make a grammar takes too much time or memory") from None
        except CrashedError as error:
            _log.warning("no grammar could be made of a schema: %s", error)
            raise _blamed(portion).refusal("no grammar could be made") from None
        except QueueFullError:
            message = "Too many requests are waiting for their schemas to be looked at."
            raise ApiError("capacity_unavailable", message) from None
        note(portion, faults)


def _blamed(portion: Sequence[Guide]) -> Guide:
    """Whose fault it is that a process has ended: of several schemas, nobody knows which."""
    return portion[0] if len(portion) == 1 else Guide("", "tools", "these functions' schemas")
