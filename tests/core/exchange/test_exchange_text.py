"""An exchange over a runtime that gives text: end tokens in it, usage from where it is known, broken characters."""

from __future__ import annotations

import json
from typing import Any

from sidecar.backends.triton.contracts.ensemble import Ensemble
from sidecar.backends.triton.frames import frame
from sidecar.backends.triton.protocol import service_pb2
from sidecar.exchange.exchange import Exchange
from sidecar.generation.style import choose_style
from tests.core import kit
from tests.core.backends import text_contracts

CONTRACT = Ensemble(
    text_contracts.names("text_input max_tokens stop_words"), batched=True, accumulates=False, tokens_per_block=0
)


THINKING = choose_style("", reasoning="think", calls="none")


class OneToken(kit.ByteRenderer):
    """A vocabulary in which every text is a single token."""

    def count(self, text: str) -> int:
        return 1


def piece(**outputs: Any) -> bytes:
    """One frame of Triton's stream."""
    message = service_pb2.ModelStreamInferResponse(infer_response=text_contracts.response(**outputs))
    return frame(message.SerializeToString())


def play(*pieces: bytes, **changes: Any) -> tuple[Exchange, dict[str, Any]]:
    """An exchange at its end, and its response."""
    served = kit.model(prompt_tokens=5, contract=CONTRACT, **changes)
    played, commands = kit.play([*pieces, kit.final()], of=kit.exchange(served))
    response: dict[str, Any] = json.loads(kit.sent(commands))
    return played, response


def text_of(response: dict[str, Any]) -> str:
    text: str = response["output"][0]["content"][0]["text"]
    return text


def test_an_end_token_in_the_text_ends_it_and_is_no_part_of_it() -> None:
    _, response = play(*(piece(text_output=text) for text in ("done", "<en", "d>", "more")))
    assert (text_of(response), response["status"]) == ("done", "completed")


def test_what_only_looked_like_an_end_token_is_text() -> None:
    _, response = play(*(piece(text_output=text) for text in ("done", "<en", "chanted>")))
    assert text_of(response) == "done<enchanted>"


def test_usage_is_what_the_runtime_tells() -> None:
    played, response = play(*[piece(text_output="a", num_output_tokens=1, num_input_tokens=9)] * 3)
    assert [response["usage"][name] for name in ("input_tokens", "output_tokens", "total_tokens")] == [9, 3, 12]
    assert not played.report.counted


def test_usage_that_nobody_tells_is_counted_and_reported_so() -> None:
    played, response = play(piece(text_output="abc"), piece(text_output="de"))
    assert [response["usage"][name] for name in ("input_tokens", "output_tokens")] == [5, 5]
    assert played.report.counted


def test_reasoning_is_no_more_than_the_whole() -> None:
    _, response = play(
        *(piece(text_output=text) for text in ("<think>", "hm", "</think>", "a")), style=THINKING, renderer=OneToken(5)
    )
    usage = response["usage"]
    assert (usage["output_tokens"], usage["output_tokens_details"]["reasoning_tokens"]) == (1, 1)


def test_counts_hold_where_a_stop_string_ends_the_answer() -> None:
    _, response = play(piece(text_output="abc"), piece(text_output="STOP"), stop=("STOP",))
    assert (text_of(response), response["usage"]["output_tokens"]) == ("abc", 7)


def test_text_before_the_first_counted_token_opens_the_answer() -> None:
    _, response = play(piece(text_output="a", num_output_tokens=0), piece(text_output="b", num_output_tokens=2))
    assert (text_of(response), response["usage"]["output_tokens"]) == ("ab", 2)


def test_broken_characters_are_reported() -> None:
    played, _ = play(piece(text_output="a\ufffd\ufffd"))
    assert played.report.broken_characters == 2


def test_a_request_that_was_never_planned_has_nothing_to_report() -> None:
    report = kit.exchange().report
    assert (report.counted, report.broken_characters) == (False, 0)
