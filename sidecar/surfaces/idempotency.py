"""The header by which a request may be sent again without being answered twice."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sidecar.responses.errors import ApiError

IDEMPOTENCY_HEADER = "idempotency-key"
REPLAYED_HEADER = "idempotency-replayed"
"""On an answer that is given again, with the value ``true``."""
MOST_OF_A_KEY = 255

WORDS = (
    f"At most {MOST_OF_A_KEY} visible ASCII characters. For 24 hours the same request with the same key has the same "
    "answer and is not billed again."
)
"""What the header means."""

_KEY = re.compile(rf"[!-~]{{1,{MOST_OF_A_KEY}}}")


def idempotency_key(headers: Mapping[str, str], *, kept: bool) -> str | None:
    """The key of a request, ``None`` where it has none; ``kept`` is whether answers can be kept.

    Raises:
        ApiError: ``invalid_request``, it is none. ``unsupported_parameter``, it would promise what nobody keeps.
    """
    key = headers.get(IDEMPOTENCY_HEADER)
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        message = f"{IDEMPOTENCY_HEADER} has 1 to {MOST_OF_A_KEY} visible ASCII characters."
        raise ApiError("invalid_request", message, IDEMPOTENCY_HEADER)
    if not kept:
        message = f"{IDEMPOTENCY_HEADER} is not supported: no answers are kept here; send the request without it."
        raise ApiError("unsupported_parameter", message, IDEMPOTENCY_HEADER)
    return key
