"""The images of a request: fetched side by side, each once, and decoded one after another, where that can be ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeVar

from sidecar.config.models import ImageLimits
from sidecar.egress.budget import ByteBudget
from sidecar.egress.fetch import INTERNET, Fetcher, Network
from sidecar.egress.held import HeldBytes, Share, no_capacity
from sidecar.fairness import QueueFullError
from sidecar.images.data_url import is_data_url, read_data_url
from sidecar.images.decode import MEMORY_PER_PIXEL, Left, decode_elsewhere, prepare
from sidecar.images.image import Image, ImageRef
from sidecar.killable import CrashedError, OverrunError, Pool
from sidecar.responses.errors import ApiError

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


# A file, what it is converted to, and the copies of both on their way between processes.
_COPIES_OF_A_FILE = 8


def decoding_processes(limits: ImageLimits) -> Pool:
    """The processes that decode the images of a worker."""
    memory = limits.max_pixels * MEMORY_PER_PIXEL + limits.max_bytes * _COPIES_OF_A_FILE
    return Pool(limits.decoders, memory=memory, prepare=prepare)


class ImageLoader:
    """Loads images within ``limits``.

    ``decoders`` are the processes that decode, ``threads`` run what takes processor time for as long as its input says.
    """

    def __init__(self, limits: ImageLimits, decoders: Pool, threads: Executor, network: Network = INTERNET) -> None:
        self._limits = limits
        self._decoders = decoders
        self._threads = threads
        self._network = network
        self._held = HeldBytes(limits.worker_max_bytes)

    @asynccontextmanager
    async def load(
        self, refs: Sequence[ImageRef], budget: ByteBudget, owner: Hashable = None
    ) -> AsyncIterator[list[Image]]:
        """The images in the order of ``refs``; they count as held by the worker until the context is left.

        What is fetched for them is taken from ``budget``. ``owner`` is on whose behalf they are loaded: owners share
        what the worker can hold and decode.

        Raises:
            ApiError: one of them cannot be had, with its ``param``; the others are given up.
        """
        first = _first_of_each_url(refs, self._limits.max_urls)
        with self._held.share(owner, self._limits.max_total_bytes) as share:
            async with Fetcher(self._limits, self._network) as fetcher:
                slots = asyncio.Semaphore(self._limits.concurrency)
                loading = _Loading(self._limits, self._decoders, self._threads, fetcher, share, budget, slots, owner)
                images = await loading.load(first.values())
            for ref in refs:
                if ref is not first[ref.url]:
                    with _named(ref):
                        share.take(len(images[ref.url].data))
            yield [images[ref.url] for ref in refs]


@dataclass(eq=False, slots=True)
class _Loading:
    """The images of one request under way."""

    limits: ImageLimits
    decoders: Pool
    threads: Executor
    fetcher: Fetcher
    share: Share
    budget: ByteBudget
    fetches: asyncio.Semaphore
    owner: Hashable
    # One at a time, so that no request takes all processes.
    decoding: asyncio.Lock = field(default_factory=asyncio.Lock)
    decoded: dict[bytes, Image] = field(default_factory=dict)
    pixels: int = 0

    async def load(self, refs: Collection[ImageRef]) -> dict[str, Image]:
        """The images by URL."""
        tasks: dict[str, asyncio.Task[Image]] = {}
        try:
            async with asyncio.timeout(self.limits.total_timeout), asyncio.TaskGroup() as group:
                for ref in refs:
                    tasks[ref.url] = group.create_task(self._load(ref))
        except TimeoutError:
            raise self._too_slow() from None
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return {url: task.result() for url, task in tasks.items()}

    async def _load(self, ref: ImageRef) -> Image:
        with _named(ref):
            content = await self._content(ref.url)
            digest = await self._in_thread(_digest, content)
            async with self.decoding:
                # Where the one before was refused, this one is cancelled here, before it has taken a process.
                await asyncio.sleep(0)
                if digest not in self.decoded:
                    self.decoded[digest] = await self._decode(content)
                return self.decoded[digest]

    async def _content(self, url: str) -> bytes:
        if not is_data_url(url):
            async with self.fetches:
                return await self.fetcher.fetch(url, self)
        content = await self._in_thread(read_data_url, url, self.limits.max_bytes)
        self.share.take(len(content))
        return content

    async def take(self, count: int) -> None:
        """Account for ``count`` bytes that have been fetched; see :class:`ByteBudget`."""
        self.share.take(count)
        await self.budget.take(count)

    async def _decode(self, content: bytes) -> Image:
        left = Left(self.limits.max_total_pixels - self.pixels, self.share.left + len(content))
        try:
            image = await self.decoders.run(
                decode_elsewhere,
                content,
                self.limits.max_pixels,
                left,
                seconds=self.limits.decode_timeout,
                owner=self.owner,
            )
        except OverrunError as error:
            raise ApiError("invalid_request", "An image takes too much time or memory to decode.") from error
        except CrashedError as error:
            _log.warning("an image could not be decoded: %s", error)
            raise ApiError("invalid_request", "An image is broken.") from error
        except QueueFullError as error:
            raise no_capacity() from error
        self.pixels += image.width * image.height
        if not image.data:
            return replace(image, data=content)
        self.share.take(len(image.data) - len(content))
        return image

    def _too_slow(self) -> ApiError:
        # What has been fetched waits for processes that others keep busy.
        if self.decoding.locked():
            return no_capacity()
        seconds = self.limits.total_timeout
        return ApiError("invalid_request", f"The images of the request could not be fetched in {seconds:g} s.")

    def _in_thread(self, function: Callable[..., _Result], *arguments: object) -> asyncio.Future[_Result]:
        return asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)


def _first_of_each_url(refs: Sequence[ImageRef], max_urls: int) -> dict[str, ImageRef]:
    """The first reference to each URL; raises :class:`ApiError` for more than ``max_urls`` that are to be fetched."""
    first: dict[str, ImageRef] = {}
    fetched = 0
    for ref in refs:
        if ref.url in first:
            continue
        first[ref.url] = ref
        fetched += not is_data_url(ref.url)
        if fetched > max_urls:
            raise ApiError("invalid_request", f"A request's images have more than {max_urls} URLs.", ref.param)
    return first


@contextmanager
def _named(ref: ImageRef) -> Iterator[None]:
    """Errors inside are those of the image that ``ref`` names."""
    try:
        yield
    except ApiError as error:
        raise replace(error, param=ref.param) from error


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()
