"""Requests whose images are made to stop a worker: each is answered, and an honest request beside it is served."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from sidecar.config.models import ImageLimits
from sidecar.egress.budget import UnlimitedBytes
from sidecar.egress.fetch import Network
from sidecar.egress.loader import ImageLoader, decoding_processes
from sidecar.egress.resolve import SystemResolver
from sidecar.images.decode import prepare
from sidecar.images.image import Image, ImageRef
from sidecar.killable import Pool
from sidecar.responses.errors import ApiError
from tests.egress.web import LOOPBACK, Answer, Resolver, Web, answer, redirect, web
from tests.hostile import images

NAME = "images.example"
HONEST = images.flat("PNG", (40, 30))
# As many seconds as no test comes near to, and every one that hangs passes.
BUDGET = 60.0

Result = TypeVar("Result")


class Watched(Pool):
    """Decoders that count the images, and tell when there is one."""

    def __init__(self, size: int = 1, memory: int = 2**31) -> None:
        super().__init__(size, memory=memory, prepare=prepare)
        self.count = 0
        self.begun = asyncio.Event()

    async def run(
        self, function: Callable[..., Result], *arguments: Any, seconds: float, owner: Hashable = None
    ) -> Result:
        self.count += 1
        self.begun.set()
        return await super().run(function, *arguments, seconds=seconds, owner=owner)


class Worker:
    """The loader of a worker, with processes of its own, on a network of one server."""

    def __init__(self, loader: ImageLoader, site: Web) -> None:
        self.loader = loader
        self.site = site

    def urls(self, *paths: str, host: str = NAME) -> list[str]:
        return [f"http://{host}:{self.site.port}{path}" for path in paths]

    async def load(self, urls: Sequence[str]) -> list[Image]:
        refs = [ImageRef(f"input[{index}]", url) for index, url in enumerate(urls)]
        async with self.loader.load(refs, UnlimitedBytes()) as loaded:
            return loaded

    async def refusal(self, urls: Sequence[str]) -> ApiError:
        """How a request fails; honest ones are served before and after it has."""
        async with asyncio.timeout(BUDGET):
            hostile = asyncio.create_task(self.load(urls))
            await self.served()
            with pytest.raises(ApiError) as raised:
                await hostile
            await self.served()
        assert (raised.value.param or "").startswith("input[")
        return raised.value

    async def served(self) -> None:
        (data,) = await self.load(data_urls(HONEST))
        (fetched,) = await self.load(self.urls("/honest"))
        assert (data.width, fetched.width) == (40, 40)


@asynccontextmanager
async def worker(
    answers: dict[str, Answer] | None = None,
    network: Network | None = None,
    decoders: Pool | None = None,
    **limits: Any,
) -> AsyncIterator[Worker]:
    async with web({"/honest": answer(HONEST), **(answers or {})}) as site:
        bounds = ImageLimits(allow_http=True, ports=(site.port,), **{"decode_timeout": BUDGET, **limits})
        known = network or Network(lambda address: str(address) == LOOPBACK, Resolver({NAME: [[LOOPBACK]]}))
        with ThreadPoolExecutor(2) as threads:
            async with decoders or decoding_processes(bounds) as processes:
                yield Worker(ImageLoader(bounds, processes, threads, known), site)


def data_urls(*contents: bytes) -> list[str]:
    return ["data:;base64," + base64.b64encode(content).decode() for content in contents]


EMPTY_SEGMENTS = b"\xff\xd8" + b"\xff\xe1\x00\x02" * 2_000_000


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        pytest.param(lambda: images.scans(5000, (2000, 2000)), "invalid_request", "more than 32 scans", id="scans"),
        pytest.param(lambda: images.scans(33), "invalid_request", "more than 32 scans", id="scans-of-the-largest"),
        pytest.param(lambda: images.flat("PNG", (8001, 5000)), "invalid_request", "8001×5000 pixels", id="png"),
        pytest.param(lambda: images.flat("JPEG", (8001, 5000)), "invalid_request", "8001×5000 pixels", id="jpeg"),
        pytest.param(lambda: images.flat("GIF", (8001, 5000), "P"), "invalid_request", "8001×5000 pixels", id="gif"),
        pytest.param(
            lambda: images.flat("WEBP", (8001, 5000), lossless=True), "invalid_request", "8001×5000 pixels", id="webp"
        ),
        pytest.param(lambda: images.texts(5000), "invalid_request", "not a PNG, JPEG", id="texts"),
        pytest.param(lambda: bytes(10 * 1024 * 1024), "invalid_request", "not a PNG, JPEG", id="zeros"),
        pytest.param(lambda: bytes(10 * 1024 * 1024 + 1), "payload_too_large", "bytes", id="too-large"),
        pytest.param(lambda: EMPTY_SEGMENTS, "invalid_request", "20000 segments", id="segments"),
        pytest.param(lambda: images.comments(1_000_000), "invalid_request", "20000 segments", id="comments"),
        pytest.param(lambda: images.comments(1, 3_000_000), "invalid_request", "20000 segments", id="comment"),
        pytest.param(lambda: images.chunks(400_000), "invalid_request", "20000 segments", id="chunks"),
    ],
)
async def test_an_image_that_costs_too_much_is_refused(content: Callable[[], bytes], code: str, words: str) -> None:
    async with worker() as running:
        error = await running.refusal(data_urls(content()))
    assert error.code == code
    assert words in error.message


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda: images.scans(32, (200, 100)), id="scans"),
        pytest.param(lambda: images.frames("GIF", 200, (200, 100)), id="gif"),
        pytest.param(lambda: images.frames("WEBP", 200, (200, 100)), id="webp"),
        pytest.param(lambda: images.frames("PNG", 200, (200, 100)), id="apng"),
    ],
)
async def test_only_as_much_as_is_shown_of_a_file_is_decoded(content: Callable[[], bytes]) -> None:
    async with worker(max_total_pixels=200 * 100) as running:
        (image,) = await running.load(data_urls(content()))
    assert (image.width, image.height) == (200, 100)


async def test_what_decoders_find_odd_about_a_file_does_not_fill_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    async with worker() as running:
        await running.load(data_urls(images.tags()))
    assert capfd.readouterr().err == ""


async def test_a_decoder_that_takes_too_long_is_ended() -> None:
    async with worker(decode_timeout=0.05, decoders=Watched()) as running:
        hostile = images.flat("PNG", mode="RGBA")
        with pytest.raises(ApiError) as raised:
            await running.load(data_urls(hostile))
    assert raised.value.message == "An image takes too much time or memory to decode."


async def test_a_decoder_that_takes_too_much_memory_is_ended() -> None:
    async with worker(decoders=Watched(memory=128 * 1024 * 1024)) as running:
        error = await running.refusal(data_urls(images.flat("PNG", mode="RGBA")))
    assert error.message == "An image takes too much time or memory to decode."


async def test_a_client_that_leaves_gives_its_decoder_back() -> None:
    decoders = Watched()
    async with worker(decoders=decoders) as running:
        pids = decoders.pids
        async with asyncio.timeout(BUDGET):
            hostile = asyncio.create_task(running.load(data_urls(images.flat("WEBP", mode="RGBA", lossless=True))))
            await decoders.begun.wait()
            hostile.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hostile
            await running.served()
        assert decoders.pids.isdisjoint(pids)


async def test_copies_are_decoded_once() -> None:
    decoders = Watched()
    async with worker(decoders=decoders) as running:
        loaded = await running.load(data_urls(images.flat("WEBP", lossless=True)) * 32)
    assert len(loaded) == 32
    assert decoders.count == 1


async def test_pixels_are_counted_together() -> None:
    decoders = Watched()
    async with worker(decoders=decoders, max_total_pixels=50_000) as running:
        contents = [images.flat("WEBP", (200, 100 + index), lossless=True) for index in range(32)]
        error = await running.refusal(data_urls(*contents))
    assert error.code == "invalid_request"
    assert "the others leave it" in error.message
    # Two of them and the one that is refused, and two times two honest ones.
    assert decoders.count == 3 + 4


async def test_a_small_file_that_becomes_a_large_one_is_refused() -> None:
    content = images.tiles("WEBP", (2048, 1024), lossless=True)
    async with worker(max_total_bytes=256 * 1024) as running:
        error = await running.refusal(data_urls(content))
    assert error.code == "payload_too_large"
    assert len(content) < 64 * 1024


async def test_many_tiny_images_are_served() -> None:
    async with worker() as running:
        contents = [images.flat("PNG", (1 + index, 1)) for index in range(200)]
        assert len(await running.load(data_urls(*contents))) == 200
        await running.served()


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + bytes(65536) + b"\r\n")
        await writer.drain()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


LARGE = answer(bytes(900_000))


@pytest.mark.parametrize(
    ("page", "count", "limits", "code", "words"),
    [
        pytest.param(endless, 1, {}, "payload_too_large", "An image has more than", id="endless"),
        pytest.param(endless, 32, {"max_total_bytes": 2**20}, "payload_too_large", "bytes together", id="many-endless"),
        pytest.param(drip, 1, {"timeout": 0.3}, "invalid_request", "took too long", id="drip"),
        pytest.param(drip, 32, {"total_timeout": 0.3}, "invalid_request", "fetched in 0.3 s", id="many-drips"),
        pytest.param(redirect("/page"), 1, {}, "invalid_request", "redirects more than", id="loop"),
        pytest.param(redirect("//b.example/"), 1, {"max_hosts": 1}, "egress_denied", "", id="elsewhere"),
        pytest.param(LARGE, 32, {"max_total_bytes": 2**21}, "payload_too_large", "bytes together", id="large"),
        pytest.param(LARGE, 32, {"max_urls": 8}, "invalid_request", "more than 8 URLs", id="urls"),
        pytest.param(LARGE, 32, {"worker_max_bytes": 2**20}, "capacity_unavailable", "as it can", id="full"),
    ],
)
async def test_a_server_that_wants_to_keep_a_worker_busy_does_not(
    page: Answer, count: int, limits: dict[str, Any], code: str, words: str
) -> None:
    async with worker({"/page": page}, **limits) as running:
        urls = running.urls(*(f"/page?{index}" for index in range(count)))
        async with asyncio.timeout(BUDGET):
            with pytest.raises(ApiError) as raised:
                await running.load(urls)
            await running.served()
    assert raised.value.code == code
    assert words in raised.value.message


async def test_copies_of_a_url_count_each_time_they_are_passed_on() -> None:
    noise = images.tiles("PNG", (600, 500), compress_level=0)
    async with worker({"/page": answer(noise)}, max_total_bytes=4 * len(noise)) as running:
        error = await running.refusal(running.urls("/page") * 5)
        assert (error.code, error.param) == ("payload_too_large", "input[4]")
        assert len(await running.load(running.urls("/page") * 4)) == 4
        assert [head.split()[1] for head in running.site.requests].count("/page") == 2


async def test_slow_host_names_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[Any]:
        if host != NAME:
            released.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (LOOPBACK, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    network = Network(lambda address: str(address) == LOOPBACK, SystemResolver())
    async with worker(network=network, lookup_timeout=0.5) as running:
        slow = [running.urls("/", host=f"slow-{index}.example")[0] for index in range(32)]
        requests = [slow[at : at + 4] for at in range(0, 32, 4)]
        try:
            refusals = await asyncio.gather(*(running.refusal(urls) for urls in requests))
        finally:
            released.set()
    assert {error.message for error in refusals} == {"The address of an image's host could not be found in time."}


async def test_a_request_has_few_hosts() -> None:
    names = [f"{letter}.example" for letter in "abcdefghi"]
    network = Network(
        lambda address: str(address) == LOOPBACK, Resolver({name: [[LOOPBACK]] for name in [NAME, *names]})
    )
    async with worker(network=network) as running:
        error = await running.refusal([url for name in names for url in running.urls("/honest", host=name)])
    assert error.message == "A request's images are on more than 8 hosts."
