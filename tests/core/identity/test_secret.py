"""The form of credentials: what is mistyped is told without a look-up, and what is secret is never shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.identity.secret import Kind, Secret, mint

KINDS = list(Kind)


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        (Kind.KEY, "b3os_sk_"),
        (Kind.TOKEN, "b3os_pat_"),
        (Kind.SESSION, "b3os_ses_"),
        (Kind.PROJECT, "ib_live_"),
    ],
)
def test_a_credential_says_its_kind_and_is_whole(kind: Kind, prefix: str) -> None:
    secret = mint(kind)
    assert re.fullmatch(prefix + "[0-9A-Za-z]{38}", secret.text)
    assert secret.is_whole
    assert [other for other in KINDS if secret.is_of(other)] == [kind]


def test_no_two_are_the_same() -> None:
    assert len({mint(Kind.KEY).digest for _ in range(1000)}) == 1000


@pytest.mark.parametrize("digits", ["0" * 32, "z" * 32, "0123456789ABCDEFGHIJKLMNOPQRSTUV"])
def test_the_checksum_is_a_crc_32_in_base62(digits: str) -> None:
    body = f"b3os_sk_{digits}"
    assert Secret(body + checksum(body)).is_whole


def checksum(body: str) -> str:
    """The same by a table and long division, to compare with."""
    value = 0xFFFFFFFF
    for byte in body.encode():
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join(digits[value // 62**place % 62] for place in range(5, -1, -1))


@given(kind=st.sampled_from(KINDS), place=st.integers(0, 36), character=st.sampled_from("0Aaz-. é"))
def test_one_wrong_character_is_found(kind: Kind, place: int, character: str) -> None:
    text = mint(kind).text
    place += len(kind.prefix)
    wrong = text[:place] + character + text[place + 1 :]
    assert Secret(wrong).is_whole is (wrong == text)


@given(kind=st.sampled_from(KINDS), kept=st.integers(0, 45))
def test_a_truncated_one_is_found(kind: Kind, kept: int) -> None:
    text = mint(kind).text
    assert Secret(text[:kept]).is_whole is (text[:kept] == text)


def test_two_that_changed_places_are_found() -> None:
    text = mint(Kind.KEY).text
    place = next(index for index in range(8, 39) if text[index] != text[index + 1])
    assert not Secret(text[:place] + text[place + 1] + text[place] + text[place + 2 :]).is_whole


def test_the_checksum_is_of_the_kind_too() -> None:
    text = mint(Kind.KEY).text
    assert not Secret(text.replace("b3os_sk_", "b3os_pat_")).is_whole


def test_nothing_shows_it_by_accident() -> None:
    secret = mint(Kind.KEY)
    assert secret.text not in f"{secret} {secret!r} {[secret]}"
    assert len(secret.hint) == 4
    assert secret.hint in secret.text[-6:]
