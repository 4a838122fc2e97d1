"""The bytes of remote images that a request was lent."""

from __future__ import annotations

import pytest

from sidecar.admission.image_bytes import ImageBytes
from sidecar.responses.errors import ApiError


async def test_what_was_lent_can_be_fetched_and_is_counted() -> None:
    lent = ImageBytes(100, limit=6000, model="m")
    await lent.take(60)
    await lent.take(40)
    assert (lent.used, lent.is_limited) == (100, True)


async def test_without_a_limit_all_is_counted_and_nothing_refused() -> None:
    free = ImageBytes()
    await free.take(10**12)
    assert (free.used, free.is_limited) == (10**12, False)


async def test_who_was_lent_too_little_is_told_when_there_will_be_more() -> None:
    lent = ImageBytes(100, limit=6000, model="m")
    with pytest.raises(ApiError) as refused:
        await lent.take(250)
    error = refused.value
    assert (error.code, error.retry, error.retry_after) == ("rate_limited", True, 2)
    assert error.message == "6000 bytes of remote images per minute allowed on m; retry in 2 seconds"


async def test_who_needs_more_than_there_ever_is_is_not_told_to_retry() -> None:
    lent = ImageBytes(100, limit=100, model="m")
    with pytest.raises(ApiError) as refused:
        await lent.take(101)
    assert (refused.value.code, refused.value.retry) == ("rate_limited", False)
    assert refused.value.reply().headers["x-should-retry"] == "false"
