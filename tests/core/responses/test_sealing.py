"""Sealed reasoning: opaque, opened by its own key alone, and given back to the model where nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.items import ReasoningItem
from sidecar.responses.open_items import ReasoningForm
from sidecar.responses.sealing import KEY_BYTES, Sealer, TeamSeal, unseal_reasoning
from tests.core.sse import parse

SEALER = Sealer(bytes(range(KEY_BYTES)))
OTHER = Sealer(bytes(KEY_BYTES))
IDS = ResponseIds("0" * 26)


@given(st.text(), st.text())
def test_what_is_sealed_opens_with_the_same_key_alone(text: str, item_id: str) -> None:
    sealed = SEALER.seal(text, item_id)
    assert sealed.isascii()
    assert SEALER.unseal(sealed) == text
    assert OTHER.unseal(sealed) is None


def test_with_another_key_in_front_the_one_before_still_opens() -> None:
    before, after = Sealer(bytes(KEY_BYTES)), Sealer(bytes(range(KEY_BYTES)), bytes(KEY_BYTES))
    assert after.unseal(before.seal("thought", "rs_1")) == "thought"
    assert SEALER.unseal(after.seal("thought", "rs_1")) == "thought"
    assert before.unseal(after.seal("thought", "rs_1")) is None


@given(st.text(), st.text(), st.text())
def test_a_summary_opens_for_its_team_alone(summary: str, team: str, other: str) -> None:
    sealed = TeamSeal(SEALER, team).seal(summary, "cmp_1")
    assert TeamSeal(SEALER, team).unseal(sealed) == summary
    assert (TeamSeal(SEALER, other).unseal(sealed) is None) == (other != team)
    assert TeamSeal(OTHER, team).unseal(sealed) is None
    assert SEALER.unseal(sealed) is None


def test_equal_texts_do_not_look_equal() -> None:
    assert SEALER.seal("thought", "rs_1") != SEALER.seal("thought", "rs_2")


@given(st.integers(0, 10_000), st.sampled_from("ABab01-_"))
def test_a_changed_seal_does_not_open(place: int, character: str) -> None:
    sealed = SEALER.seal("The user asks for the weather.", "rs_1")
    at = place % len(sealed)
    changed = sealed[:at] + character + sealed[at + 1 :]
    assert SEALER.unseal(changed) in (None, "The user asks for the weather.")
    assert (SEALER.unseal(changed) is None) == (changed != sealed) or at == len(sealed) - 1


@given(st.text())
def test_any_other_text_does_not_open(text: str) -> None:
    assert SEALER.unseal(text) is None


@pytest.mark.parametrize("length", [0, 32, 63, 65])
def test_a_key_has_64_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        Sealer(bytes(length))


def item(**members: Any) -> ReasoningItem:
    return ReasoningItem.model_validate({"type": "reasoning", **members})


SEALED = SEALER.seal("hidden", "rs_1")
SUMMARY = [{"type": "summary_text", "text": "shown"}]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"encrypted_content": SEALED, "summary": []}, "hidden"),
        ({"encrypted_content": SEALED, "summary": SUMMARY}, "shown"),
        ({"encrypted_content": OTHER.seal("hidden", "rs_1")}, ""),
        ({"encrypted_content": "gAAAA of another server"}, ""),
        ({"encrypted_content": {"a": 1}}, ""),
        ({"encrypted_content": None}, ""),
        ({}, ""),
    ],
)
def test_reasoning_that_is_only_there_sealed_becomes_readable(sent: dict[str, Any], text: str) -> None:
    (read,) = unseal_reasoning([item(**sent)], SEALER)
    assert read.text == text


def test_a_finished_reasoning_item_holds_its_seal() -> None:
    writer = EventWriter(IDS, {}, ReasoningForm(seal=SEALER.seal))
    added = parse(writer.open_reasoning())[0].data["item"]
    events = parse(writer.delta("hid") + writer.delta("den") + writer.close("completed"))
    done = events[-1].data["item"]
    assert "encrypted_content" not in added
    assert SEALER.unseal(done["encrypted_content"]) == "hidden"
    assert writer.output == [done]
