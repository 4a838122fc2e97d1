"""The images of a request: in order, some at a time, and all or none."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image as Pillow

from sidecar.config.models import ImageLimits
from sidecar.egress.budget import UnlimitedBytes
from sidecar.egress.fetch import Network
from sidecar.egress.loader import ImageLoader
from sidecar.images.image import Image, ImageRef
from sidecar.responses.errors import ApiError
from tests.egress.web import LOOPBACK, Resolver, Web, answer, web

NAME = "images.example"
LIMITS = ImageLimits(allow_http=True, max_bytes=10_000, max_pixels=10_000, timeout=20.0)


def png(width: int, height: int = 1) -> bytes:
    file = io.BytesIO()
    Pillow.new("L", (width, height)).save(file, "PNG")
    return file.getvalue()


def data_url(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()


async def load(site: Web, *urls: str, limits: ImageLimits = LIMITS) -> list[Image]:
    network = Network(lambda address: str(address) == LOOPBACK, lambda: Resolver({NAME: [[LOOPBACK]]}))
    refs = [ImageRef(f"input[{index}]", url) for index, url in enumerate(urls)]
    with ThreadPoolExecutor(1) as decoders:
        loader = ImageLoader(limits.model_copy(update={"ports": (site.port,)}), decoders, network)
        return await loader.load(refs, UnlimitedBytes())


def gate(parties: int) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """An answer that waits until ``parties`` requests wait."""
    arrived: list[None] = []
    opened = asyncio.Event()

    async def respond(writer: asyncio.StreamWriter) -> None:
        arrived.append(None)
        if len(arrived) >= parties:
            opened.set()
        await opened.wait()
        writer.write(answer(png(1)))
        await writer.drain()

    return respond


async def test_images_come_in_the_order_of_the_request() -> None:
    async with web({f"/{width}": answer(png(width)) for width in range(1, 6)}) as site:
        remote = [f"http://{NAME}:{site.port}/{width}" for width in range(1, 6)]
        images = await load(site, data_url(png(9)), *remote, data_url(png(8)))
    assert [image.width for image in images] == [9, 1, 2, 3, 4, 5, 8]


async def test_images_are_fetched_side_by_side_up_to_the_bound() -> None:
    async with web({"/": gate(3)}) as site:
        urls = [f"http://{NAME}:{site.port}/"] * 8
        assert len(await load(site, *urls, limits=LIMITS.model_copy(update={"concurrency": 3}))) == 8
    assert site.most_running == 3


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (data_url(b"not an image"), "invalid_request"),
        (data_url(png(1000, 1000)), "invalid_request"),
        (data_url(bytes(10_001)), "payload_too_large"),
        ("data:image/png,secret", "invalid_request"),
        ("https://10.0.0.1/?secret", "egress_denied"),
        ("http://images.example:PORT/text?secret", "invalid_request"),
        ("http://images.example:PORT/large?secret", "payload_too_large"),
    ],
)
async def test_one_bad_image_fails_the_request_with_its_path(url: str, code: str) -> None:
    answers = {"/": answer(png(1)), "/text": answer(b"hello"), "/large": answer(bytes(10_001))}
    async with web(answers) as site:
        good = f"http://{NAME}:{site.port}/"
        bad = url.replace("PORT", str(site.port)).replace("10.0.0.1", f"10.0.0.1:{site.port}")
        with pytest.raises(ApiError) as raised:
            await load(site, good, bad, good)
    assert (raised.value.code, raised.value.param) == (code, "input[1]")
    assert "secret" not in raised.value.message


async def test_the_other_fetches_are_given_up_when_one_fails() -> None:
    hanging, given_up = asyncio.Event(), asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        hanging.set()
        try:
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            given_up.set()

    async def fail(writer: asyncio.StreamWriter) -> None:
        await hanging.wait()
        writer.write(answer(b"not an image"))
        await writer.drain()

    async with web({"/hang": hang, "/fail": fail}) as site:
        with pytest.raises(ApiError) as raised:
            await load(site, f"http://{NAME}:{site.port}/hang", f"http://{NAME}:{site.port}/fail")
        await asyncio.wait_for(given_up.wait(), 10)
    assert raised.value.param == "input[1]"
