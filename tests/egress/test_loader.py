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
from sidecar.fairness import QueueFullError
from sidecar.images.image import Image, ImageRef
from sidecar.killable import CrashedError, OverrunError
from sidecar.responses.errors import ApiError
from tests.core.in_place import InPlace
from tests.egress.web import LOOPBACK, Resolver, Web, answer, web

NAME = "images.example"
LIMITS = ImageLimits(allow_http=True, max_bytes=10_000, max_pixels=10_000, timeout=20.0)


def limited(**limits: float) -> ImageLimits:
    return LIMITS.model_copy(update=limits)


def png(width: int, height: int = 1) -> bytes:
    file = io.BytesIO()
    Pillow.new("L", (width, height)).save(file, "PNG")
    return file.getvalue()


def data_url(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()


async def load(site: Web, *urls: str, limits: ImageLimits = LIMITS, decoders: InPlace | None = None) -> list[Image]:
    network = Network(lambda address: str(address) == LOOPBACK, Resolver({NAME: [[LOOPBACK]]}))
    refs = [ImageRef(f"input[{index}]", url) for index, url in enumerate(urls)]
    with ThreadPoolExecutor(1) as threads:
        loader = ImageLoader(limits.model_copy(update={"ports": (site.port,)}), decoders or InPlace(), threads, network)
        async with loader.load(refs, UnlimitedBytes()) as images:
            return images


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
        urls = [f"http://{NAME}:{site.port}/?{index}" for index in range(8)]
        assert len(await load(site, *urls, limits=limited(concurrency=3))) == 8
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


def gif(colour: int) -> bytes:
    file = io.BytesIO()
    Pillow.new("P", (2, 1), colour).save(file, "GIF")
    return file.getvalue()


async def test_the_same_image_is_fetched_and_decoded_once() -> None:
    decoders = InPlace()
    async with web({"/a": answer(png(3)), "/b": answer(png(3)), "/c": answer(png(4))}) as site:
        paths = ["a", "b", "c", "a", "c"]
        urls = [f"http://{NAME}:{site.port}/{path}" for path in paths]
        images = await load(site, *urls, data_url(png(3)), data_url(png(4)), decoders=decoders)
    assert [image.width for image in images] == [3, 3, 4, 3, 4, 3, 4]
    assert len(site.requests) == 3
    assert len(decoders.calls) == 2


TOGETHER = "The images of a request have more than"


@pytest.mark.parametrize(
    ("limits", "urls", "code", "message", "param"),
    [
        ({"max_total_bytes": 2 * len(png(1))}, "a b c", "payload_too_large", TOGETHER, None),
        ({"max_total_bytes": 2 * len(png(1))}, "a a a", "payload_too_large", TOGETHER, "input[2]"),
        ({"max_total_bytes": len(gif(1))}, "gif", "payload_too_large", "An image has more than", "input[0]"),
        ({"max_total_pixels": 5}, "a b c", "invalid_request", "the others leave it", None),
        ({"max_urls": 2}, "a b a c", "invalid_request", "A request's images have more than 2 URLs.", "input[3]"),
    ],
)
async def test_the_images_of_a_request_have_limits_together(
    limits: dict[str, int], urls: str, code: str, message: str, param: str | None
) -> None:
    answers = {f"/{name}": answer(png(width)) for width, name in enumerate("abc", 1)}
    async with web({**answers, "/gif": answer(gif(1))}) as site:
        with pytest.raises(ApiError) as raised:
            paths = [f"http://{NAME}:{site.port}/{path}" for path in urls.split()]
            await load(site, *paths, limits=limited(**limits))
    assert raised.value.code == code
    assert message in raised.value.message
    assert raised.value.param is not None
    assert raised.value.param == (param or raised.value.param)


async def test_as_much_as_is_allowed_together_is_taken() -> None:
    limits = limited(max_total_bytes=2 * len(png(3)), max_total_pixels=3, max_urls=1)
    async with web({"/": answer(png(3))}) as site:
        assert len(await load(site, f"http://{NAME}:{site.port}/", data_url(png(3)), limits=limits)) == 2


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (OverrunError("took long"), "invalid_request", "An image takes too much time or memory to decode."),
        (CrashedError("ended"), "invalid_request", "An image is broken."),
        (QueueFullError(), "capacity_unavailable", "The server is reading as many images as it can."),
    ],
)
async def test_what_happens_to_a_decoder_is_told_as_the_images_error(
    failure: Exception, code: str, message: str
) -> None:
    async with web({}) as site:
        with pytest.raises(ApiError) as raised:
            await load(site, data_url(png(1)), decoders=InPlace(failure))
    assert (raised.value.code, raised.value.message, raised.value.param) == (code, message, "input[0]")


async def test_a_worker_that_holds_enough_refuses_more_until_some_are_let_go() -> None:
    limits = limited(worker_max_bytes=len(png(3)))
    refs = [ImageRef("input[0]", data_url(png(3)))]
    with ThreadPoolExecutor(1) as threads:
        loader = ImageLoader(limits, InPlace(), threads)
        async with loader.load(refs, UnlimitedBytes()):
            with pytest.raises(ApiError) as raised:
                async with loader.load(refs, UnlimitedBytes()):
                    pytest.fail("loaded")
        async with loader.load(refs, UnlimitedBytes()) as images:
            assert len(images) == 1
    assert (raised.value.code, raised.value.param) == ("capacity_unavailable", "input[0]")
    assert raised.value.status == 503


async def silence(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_all_images_together_have_a_deadline() -> None:
    async with web({"/": silence}) as site:
        with pytest.raises(ApiError) as raised:
            await load(site, f"http://{NAME}:{site.port}/", limits=limited(total_timeout=0.2))
    assert raised.value.message == "The images of the request could not be fetched in 0.2 s."
