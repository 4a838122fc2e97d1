"""The metrics of all workers, for Prometheus to scrape. They hold nothing of clients, and need no key."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sidecar.admin.route import OpenPath
from sidecar.responses.reply import Reply
from sidecar.telemetry.metrics.metrics import CONTENT_TYPE, scrape


def metrics_path(directory: Path) -> OpenPath:
    """``/metrics``, from the files in ``directory``."""

    async def answer() -> Reply:
        # In a thread: it may read a megabyte.
        text = await asyncio.to_thread(scrape, directory)
        return Reply(200, {"content-type": CONTENT_TYPE, "cache-control": "no-store"}, text)

    return OpenPath("/metrics", answer)
