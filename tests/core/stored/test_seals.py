"""What is sealed opens where it was written, with its own key, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.stored.master_keys import KeyUnknown, MasterKeys, fingerprint
from sidecar.stored.owner import Owner
from sidecar.stored.seals import Place, SealBroken
from tests.core.stored.kit import MASTER, OTHER_MASTER, OWNER, PLACE, data_key

NONCE = b"n" * 12
SEALED = data_key().seal(b"the secret", PLACE, "input", NONCE)


@given(st.binary(max_size=200), st.binary(min_size=12, max_size=12))
def test_a_text_comes_back(text: bytes, nonce: bytes) -> None:
    assert data_key().open(data_key().seal(text, PLACE, "input", nonce), PLACE, "input") == text


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_a_byte_that_was_changed_is_noticed(index: int, change: int) -> None:
    changed = SEALED[:index] + bytes([SEALED[index] ^ change]) + SEALED[index + 1 :]
    with pytest.raises(SealBroken, match="the input of resp_2 is not what was stored"):
        data_key().open(changed, PLACE, "input")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 28, len(SEALED) - 1])
def test_a_text_that_was_cut_is_noticed(length: int) -> None:
    with pytest.raises(SealBroken):
        data_key().open(SEALED[:length], PLACE, "input")


@pytest.mark.parametrize(
    "place",
    [
        replace(PLACE, response_id="resp_3"),
        replace(PLACE, previous_id=None),
        replace(PLACE, previous_id="resp_0"),
        replace(PLACE, owner=replace(OWNER, organization="org_b")),
        replace(PLACE, owner=replace(OWNER, project="search")),
        replace(PLACE, owner=replace(OWNER, environment="staging")),
        # The same letters, divided otherwise.
        replace(PLACE, owner=Owner("org_a", "supportproduction", "")),
    ],
)
def test_it_does_not_open_in_another_place(place: Place) -> None:
    with pytest.raises(SealBroken):
        data_key().open(SEALED, place, "input")


def test_it_does_not_open_as_another_part_or_with_another_key() -> None:
    with pytest.raises(SealBroken):
        data_key().open(SEALED, PLACE, "output")
    with pytest.raises(SealBroken):
        data_key(1).open(SEALED, PLACE, "input")


def test_the_first_master_key_wraps_and_any_opens() -> None:
    old = MasterKeys([MASTER])
    wrapped = old.wrap(b"d" * 32, "dk_1", "org_a", NONCE)
    both = MasterKeys([OTHER_MASTER, MASTER])
    assert both.first == fingerprint(OTHER_MASTER)
    assert both.unwrap(wrapped, old.first, "dk_1", "org_a") == b"d" * 32
    with pytest.raises(KeyUnknown, match=f"dk_1 is wrapped by the master key {old.first}, which is not configured"):
        MasterKeys([OTHER_MASTER]).unwrap(wrapped, old.first, "dk_1", "org_a")


@pytest.mark.parametrize(("key_id", "organization"), [("dk_2", "org_a"), ("dk_1", "org_b")])
def test_a_wrapped_key_is_bound_to_its_team(key_id: str, organization: str) -> None:
    masters = MasterKeys([MASTER])
    wrapped = masters.wrap(b"d" * 32, "dk_1", "org_a", NONCE)
    with pytest.raises(KeyUnknown, match="is not what the master key"):
        masters.unwrap(wrapped, masters.first, key_id, organization)


@pytest.mark.parametrize("keys", [[], [b"short"], [MASTER, MASTER + b"x"]])
def test_a_key_of_another_length_is_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        MasterKeys(keys)
