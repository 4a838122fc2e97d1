"""How an organization stands with its limits, as clients are told in headers.

Names and form are OpenAI's: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from sidecar.admission.buckets import Bucket


@dataclass(frozen=True, slots=True)
class Standing:
    """The buckets of requests and of tokens after a decision; ``None`` where there is no such limit."""

    requests: Bucket | None = None
    tokens: Bucket | None = None

    def headers(self) -> dict[str, str]:
        """``x-ratelimit-{limit,remaining,reset}-{requests,tokens}``, for the limits that exist."""
        headers = {}
        for unit, bucket in (("requests", self.requests), ("tokens", self.tokens)):
            if bucket is not None:
                headers[f"x-ratelimit-limit-{unit}"] = str(bucket.limit)
                headers[f"x-ratelimit-remaining-{unit}"] = str(bucket.left)
                headers[f"x-ratelimit-reset-{unit}"] = duration(bucket.until_full)
        return headers


UNLIMITED = Standing()
"""That of an organization without such limits."""


def duration(microseconds: int) -> str:
    """A time as ``12ms``, ``1.5s`` or ``6m0s``, rounded up to a millisecond, above a minute to a second."""
    milliseconds = ceil(microseconds / 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:g}s"
    seconds = ceil(milliseconds / 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}s" if hours else f"{minutes}m{seconds}s"
