"""The metrics of a stack, as Prometheus reads them."""

from __future__ import annotations

import httpx2

from stack.local import LocalStack
from tests.core.telemetry.scraped import Scraped


async def scrape(stack: LocalStack) -> Scraped:
    """The metrics of now; raises :class:`httpx2.TransportError` where the worker that is asked ends meanwhile."""
    # Without the certificates that a client of https loads each time.
    async with httpx2.AsyncClient(verify=False) as http:
        answer = await http.get(f"http://{stack.admin}/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Scraped(answer.text)
