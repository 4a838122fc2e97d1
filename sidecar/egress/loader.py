"""The images of a request: fetched side by side, decoded off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from sidecar.config.models import ImageLimits
from sidecar.egress.budget import ByteBudget
from sidecar.egress.fetch import INTERNET, Fetcher, Network
from sidecar.images.data_url import is_data_url, read_data_url
from sidecar.images.decode import decode
from sidecar.images.image import Image, ImageRef
from sidecar.responses.errors import ApiError


class ImageLoader:
    """Loads images within ``limits``; ``decoders`` runs what takes processor time."""

    def __init__(self, limits: ImageLimits, decoders: Executor, network: Network = INTERNET) -> None:
        self._limits = limits
        self._decoders = decoders
        self._network = network

    async def load(self, refs: Sequence[ImageRef], budget: ByteBudget) -> list[Image]:
        """The images in the order of ``refs``; what is fetched for them is taken from ``budget``.

        Raises:
            ApiError: one of them cannot be had, with its ``param``; the others are given up.
        """
        async with Fetcher(self._limits, self._network) as fetcher:
            slots = asyncio.Semaphore(self._limits.concurrency)
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._load(ref, fetcher, slots, budget)) for ref in refs]
            except BaseExceptionGroup as failures:
                raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _load(self, ref: ImageRef, fetcher: Fetcher, slots: asyncio.Semaphore, budget: ByteBudget) -> Image:
        loop = asyncio.get_running_loop()
        try:
            async with slots:
                if is_data_url(ref.url):
                    return await loop.run_in_executor(self._decoders, self._read, ref.url)
                content = await fetcher.fetch(ref.url, budget)
                return await loop.run_in_executor(self._decoders, decode, content, self._limits.max_pixels)
        except ApiError as error:
            raise replace(error, param=ref.param) from error

    def _read(self, url: str) -> Image:
        return decode(read_data_url(url, self._limits.max_bytes), self._limits.max_pixels)
