"""Images: recognised by their bytes, checked before they are decoded, upright, in a form that runtimes take."""

from __future__ import annotations

import base64
import io
import random
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from sidecar.images.data_url import is_data_url, read_data_url
from sidecar.images.decode import Left, decode, decode_elsewhere
from sidecar.responses.errors import ApiError

MAX_PIXELS = 1_000_000
RED, BLUE = (254, 0, 0), (0, 0, 254)
ORIENTATION = 0x0112


def file(picture: Pillow.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format, **options)
    return buffer.getvalue()


def halves(size: tuple[int, int] = (64, 32)) -> Pillow.Image:
    """Red on the left, blue on the right."""
    picture = Pillow.new("RGB", size, RED)
    picture.paste(BLUE, (size[0] // 2, 0, *size))
    return picture


def noise() -> Pillow.Image:
    return Pillow.frombytes("RGB", (64, 48), random.Random(1).randbytes(64 * 48 * 3))


def moving(format: str) -> bytes:
    return file(halves(), format, save_all=True, append_images=[noise().resize((64, 32))], duration=100)


def with_orientation(format: str, orientation: int) -> bytes:
    exif = Pillow.Exif()
    exif[ORIENTATION] = orientation
    return file(halves(), format, exif=exif)


def opened(data: bytes) -> Pillow.Image:
    return Pillow.open(io.BytesIO(data))


def is_near(pixel: Any, colour: tuple[int, int, int]) -> bool:
    return all(abs(is_ - should) < 40 for is_, should in zip(pixel[:3], colour, strict=True))


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (file(halves(), "PNG"), "image/png"),
        (file(halves().convert("RGBA"), "PNG"), "image/png"),
        (file(halves().convert("L"), "PNG"), "image/png"),
        (file(halves(), "JPEG"), "image/jpeg"),
        (file(halves(), "JPEG", progressive=True), "image/jpeg"),
        (file(halves().convert("CMYK"), "JPEG"), "image/jpeg"),
        (file(halves(), "MPO", save_all=True, append_images=[noise()]), "image/jpeg"),
    ],
    ids=["rgb", "rgba", "grey", "jpeg", "progressive", "cmyk", "mpo"],
)
def test_what_runtimes_read_is_passed_on_as_it_is(data: bytes, mime: str) -> None:
    image = decode(data, MAX_PIXELS)
    assert (image.mime, image.data, image.width, image.height) == (mime, data, 64, 32)


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (file(halves(), "WEBP"), "image/jpeg"),
        (file(halves(), "WEBP", lossless=True), "image/jpeg"),
        (file(halves(), "GIF"), "image/png"),
        (moving("WEBP"), "image/jpeg"),
        (moving("GIF"), "image/png"),
    ],
    ids=["webp", "lossless", "gif", "moving-webp", "moving-gif"],
)
def test_other_formats_are_converted_and_moving_ones_by_their_first_frame(data: bytes, mime: str) -> None:
    image = decode(data, MAX_PIXELS)
    assert (image.mime, image.width, image.height) == (mime, 64, 32)
    result = opened(image.data)
    assert (Pillow.MIME[result.format or ""], result.size) == (mime, (64, 32))
    pixels = result.convert("RGB")
    assert is_near(pixels.getpixel((8, 16)), RED)
    assert is_near(pixels.getpixel((56, 16)), BLUE)


def test_transparency_is_kept() -> None:
    clear = Pillow.new("RGBA", (8, 8), (254, 0, 0, 100))
    image = decode(file(clear, "WEBP", lossless=True), MAX_PIXELS)
    assert image.mime == "image/png"
    assert opened(image.data).convert("RGBA").getpixel((4, 4)) == (254, 0, 0, 100)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "size", "red", "blue"),
    [
        (1, (64, 32), (8, 16), (56, 16)),
        (2, (64, 32), (56, 16), (8, 16)),
        (3, (64, 32), (56, 16), (8, 16)),
        (4, (64, 32), (8, 16), (56, 16)),
        (5, (32, 64), (16, 8), (16, 56)),
        (6, (32, 64), (16, 8), (16, 56)),
        (7, (32, 64), (16, 56), (16, 8)),
        (8, (32, 64), (16, 56), (16, 8)),
    ],
)
def test_an_image_is_put_upright(
    format: str, orientation: int, size: tuple[int, int], red: tuple[int, int], blue: tuple[int, int]
) -> None:
    image = decode(with_orientation(format, orientation), MAX_PIXELS)
    result = opened(image.data)
    assert (image.width, image.height) == result.size == size
    assert result.getexif().get(ORIENTATION, 1) == 1
    assert is_near(result.convert("RGB").getpixel(red), RED)
    assert is_near(result.convert("RGB").getpixel(blue), BLUE)


def png_of(width: int, height: int) -> bytes:
    """A PNG that says it has this size, and holds a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")


def gif_of(width: int, height: int) -> bytes:
    """A GIF of one pixel whose frame says it has this size."""
    small = bytearray(file(Pillow.new("P", (1, 1)), "GIF"))
    frame = small.index(b"\x2c")
    small[frame + 5 : frame + 9] = struct.pack("<HH", width, height)
    return bytes(small)


@pytest.mark.parametrize(
    "data",
    [
        png_of(50_000, 50_000),
        png_of(2**31 - 1, 2**31 - 1),
        png_of(1001, 1000),
        gif_of(65_535, 65_535),
        file(Pillow.new("L", (4000, 4000)), "JPEG"),
        file(Pillow.new("RGB", (4000, 4000)), "WEBP"),
        file(Pillow.new("P", (4000, 4000)), "GIF"),
    ],
    ids=["png", "png-largest", "just-too-many", "gif-frame", "jpeg", "webp", "gif"],
)
@pytest.mark.filterwarnings("error")
def test_too_many_pixels_are_refused_before_they_are_decoded(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _self: pytest.fail("decoded"))
    with pytest.raises(ApiError) as raised:
        decode(data, MAX_PIXELS)
    assert raised.value.code == "invalid_request"
    assert f"at most {MAX_PIXELS} are accepted" in raised.value.message


def test_as_many_pixels_as_are_allowed_are_taken() -> None:
    assert decode(file(Pillow.new("L", (1000, 1000)), "PNG"), MAX_PIXELS).width == 1000


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF"])
@pytest.mark.parametrize("kept", [0.05, 0.5, 0.9])
def test_a_file_that_was_cut_is_refused(format: str, kept: float) -> None:
    whole = file(noise(), format)
    with pytest.raises(ApiError) as raised:
        decode(whole[: int(len(whole) * kept)], MAX_PIXELS)
    assert raised.value.code == "invalid_request"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7",
        b"not an image",
        *(file(halves(), format) for format in ("BMP", "TIFF", "ICO", "PPM", "TGA")),
    ],
)
def test_what_is_no_image_of_the_four_formats_is_refused(data: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        decode(data, MAX_PIXELS)
    assert (raised.value.code, raised.value.message) == (
        "invalid_request",
        "An image is not a PNG, JPEG, WebP or GIF file.",
    )


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF"])
@given(seed=st.integers(0, 2**32))
def test_a_damaged_file_is_refused_or_read_and_nothing_else(format: str, seed: int) -> None:
    chance = random.Random(seed)
    damaged = bytearray(file(halves(), format))
    for _ in range(chance.randint(1, 8)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    try:
        image = decode(bytes(damaged), MAX_PIXELS)
    except ApiError as error:
        assert error.code == "invalid_request"
    else:
        assert image.width * image.height <= MAX_PIXELS


CONTENT = bytes(range(256))
ENCODED = base64.b64encode(CONTENT).decode()


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{ENCODED}",
        f"DATA:IMAGE/PNG;BASE64,{ENCODED}",
        f"data:;base64,{ENCODED}",
        f"data:image/jpeg;charset=utf-8;base64,{ENCODED}",
        f"data:image/png;base64,{ENCODED.rstrip('=')}",
        f"data:image/png;base64,{base64.encodebytes(CONTENT).decode()}",
        f"data:image/png;base64, {ENCODED}",
        f"data:image/png;base64,{ENCODED.replace('+', '%2B').replace('/', '%2f').replace('=', '%3D')}",
    ],
)
def test_a_data_url_is_read(url: str) -> None:
    assert is_data_url(url)
    assert read_data_url(url, 256) == CONTENT


@pytest.mark.parametrize(
    "url",
    [
        "data:",
        "data:image/png",
        "data:image/png,hello",
        f"data:image/png;base64{ENCODED}",
        "data:image/png;base64,a",
        "data:image/png;base64,secret*secret",
        "data:image/png;base64,sécrèt=",
        "data:image/png;base64,ab=cd",
    ],
)
def test_a_data_url_without_base64_is_refused(url: str) -> None:
    with pytest.raises(ApiError) as raised:
        read_data_url(url, 256)
    assert raised.value.code == "invalid_request"
    assert "secret" not in raised.value.message


def test_a_data_url_with_too_much_content_is_refused() -> None:
    with pytest.raises(ApiError) as raised:
        read_data_url(f"data:image/png;base64,{ENCODED}", 255)
    assert raised.value.code == "payload_too_large"


def test_a_web_url_is_no_data_url() -> None:
    assert not is_data_url("https://example.com/data:")


SEGMENT = b"\xff\xe2\x00\x04ab"


def in_segments(count: int) -> bytes:
    whole = file(halves(), "JPEG")
    return whole[:2] + SEGMENT * count + whole[2:]


def in_scans(count: int, before: bytes = b"") -> bytes:
    """A JPEG of ``count`` scans, with ``before`` in front of each that is added."""
    whole = file(halves(), "JPEG", progressive=True)
    last = whole.rindex(b"\xff\xda")
    return whole[:-2] + (before + whole[last:-2]) * (count - whole.count(b"\xff\xda")) + whole[-2:]


def in_chunks(count: int) -> bytes:
    whole = file(halves(), "PNG")
    empty = b"\0\0\0\0teXt" + struct.pack(">I", zlib.crc32(b"teXt"))
    at = whole.index(b"IDAT") - 4
    return whole[:at] + empty * count + whole[at:]


def in_blocks(count: int) -> bytes:
    whole = file(halves().convert("P"), "GIF")
    at = whole.index(b"\x2c\0\0\0\0")
    return whole[:at] + b"\x21\xfe" + b"\x01x" * count + b"\0" + whole[at:]


@pytest.mark.parametrize(
    ("few", "many", "what"),
    [
        (in_scans(32), in_scans(33), "scans"),
        (in_scans(32), in_scans(33, before=b"between"), "scans"),
        (in_scans(32), in_scans(33, before=b"\xff\xff\xd0\xff\x00" + SEGMENT), "scans"),
        (in_segments(15_000), in_segments(20_001), "segments"),
        (in_chunks(15_000), in_chunks(20_001), "segments"),
        (in_blocks(15_000), in_blocks(20_001), "segments"),
    ],
)
def test_a_file_of_more_pieces_than_images_have_is_refused(few: bytes, many: bytes, what: str) -> None:
    assert decode(few, MAX_PIXELS).width == 64
    with pytest.raises(ApiError) as raised:
        decode(many, MAX_PIXELS)
    assert raised.value.code == "invalid_request"
    assert what in raised.value.message


def test_scans_of_a_thumbnail_and_of_further_pictures_do_not_count() -> None:
    thumbnail = in_scans(30)
    whole = file(halves(), "JPEG", progressive=True)
    segment = b"\xff\xe5" + struct.pack(">H", 2 + len(thumbnail)) + thumbnail
    assert decode(whole[:2] + segment + whole[2:] + in_scans(33), MAX_PIXELS).width == 64


def test_what_the_other_images_of_a_request_leave_is_kept_to() -> None:
    gif = file(halves(), "GIF")
    assert decode(gif, MAX_PIXELS, Left(64 * 32, 10_000)).mime == "image/png"
    with pytest.raises(ApiError, match="the others leave it 2047"):
        decode(gif, MAX_PIXELS, Left(64 * 32 - 1, 10_000))
    with pytest.raises(ApiError, match="more than the 10 bytes") as raised:
        decode(gif, MAX_PIXELS, Left(64 * 32, 10))
    assert raised.value.code == "payload_too_large"


def test_a_file_that_is_passed_on_is_not_sent_back() -> None:
    png = file(halves(), "PNG")
    assert decode_elsewhere(png, MAX_PIXELS, Left(10_000, 10_000)).data == b""
    assert decode_elsewhere(file(halves(), "GIF"), MAX_PIXELS, Left(10_000, 10_000)).data != b""
