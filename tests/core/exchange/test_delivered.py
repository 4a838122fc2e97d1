"""Marks: how far an answer has come with each piece of it that is sent."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.exchange.delivered import Delivered
from sidecar.exchange.exchange import Exchange
from sidecar.generation.style import choose_style
from sidecar.responses.marks import NOTHING, Counts, mark_of
from tests.core import kit
from tests.core.sse import parse

TOKENS = st.integers(0, 2**31 - 1)
STYLE = choose_style("", reasoning="think", calls="hermes")


def answering(*, stream: bool) -> Exchange:
    """An exchange whose upstream has been called."""
    exchange = kit.exchange()
    kit.handle(exchange, kit.request(stream=stream))
    return exchange


def thinking() -> Exchange:
    """The same, of a model that thinks aloud and calls tools."""
    exchange = kit.exchange(kit.model(style=STYLE, context_length=10_000))
    kit.handle(exchange, kit.request(stream=True, tools=[{"type": "function", "name": "f", "parameters": {}}]))
    return exchange


def written(exchange: Exchange, pieces: Iterable[str]) -> list[tuple[int, int]]:
    """Output and reasoning tokens that are written after each of ``pieces``."""
    found = []
    for piece in pieces:
        exchange.upstream(kit.text(piece), 101.0)
        counts = Counts.of(exchange.report.delivered.written)
        found.append((counts.output_tokens, counts.reasoning_tokens))
    return found


@given(TOKENS, TOKENS)
def test_a_mark_is_eight_bytes_that_hold_two_numbers_and_a_begin(output: int, reasoning: int) -> None:
    mark = mark_of(output, reasoning)
    assert Counts.of(int.from_bytes(mark.to_bytes(8, "little"), "little")) == (True, output, reasoning)


def test_nothing_is_no_begin() -> None:
    assert Counts.of(NOTHING) == (False, 0, 0)


def test_an_answer_that_has_begun_without_a_token_is_not_nothing() -> None:
    assert Counts.of(mark_of(0, 0)) == (True, 0, 0)


def test_what_is_handed_over_does_not_reach_a_cell_that_was_left() -> None:
    delivered = Delivered()
    cell = [NOTHING]
    delivered.cell = cell
    delivered.cell[0] = mark_of(3, 1)
    delivered.detach()
    delivered.cell[0] = mark_of(9, 9)
    assert Counts.of(cell[0]) == (True, 3, 1)


def test_text_counts_with_the_message_that_holds_it() -> None:
    assert written(answering(stream=True), ["a", "bc", "d"]) == [(1, 0), (3, 0), (4, 0)]


def test_text_that_is_held_back_does_not_count_yet() -> None:
    # It may be the begin of the marker of a call.
    pieces = ["<think>", "Hm.", "</think>", "Hi", "<tool", "_box>"]
    assert written(thinking(), pieces) == [(0, 0), (10, 10), (10, 10), (20, 18), (20, 18), (30, 18)]


def test_a_piece_that_shows_counts_without_those_behind_it_in_the_same_bytes() -> None:
    exchange = thinking()
    exchange.upstream(kit.text("<think></think>Hi") + kit.text("<too"), 101.0)
    assert Counts.of(exchange.report.delivered.written).output_tokens == len("<think></think>Hi")
    assert exchange.report.usage.output_tokens == len("<think></think>Hi<too")


def test_a_whole_stream_counts_as_its_last_event_tells() -> None:
    exchange, commands = kit.play([kit.text("Hel"), kit.text("lo"), kit.response([kit.END]), kit.final()], stream=True)
    told = parse(kit.sent(commands))[-1].data["response"]["usage"]
    counts = Counts.of(exchange.report.delivered.written)
    assert (counts.output_tokens, counts.begun) == (told["output_tokens"], True)


def test_an_answer_that_is_no_stream_counts_when_it_is_whole() -> None:
    exchange = answering(stream=False)
    assert written(exchange, ["Hel", "lo"]) == [(0, 0), (0, 0)]
    exchange.upstream(kit.final(), 101.0)
    exchange.handle(kit.whole_end())
    assert Counts.of(exchange.report.delivered.written) == (True, exchange.report.usage.output_tokens, 0)


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_without_a_token_has_begun(stream: bool) -> None:
    exchange, _ = kit.play([kit.final()], stream=stream)
    assert Counts.of(exchange.report.delivered.written) == (True, 0, 0)


def test_an_answer_that_fails_as_a_plain_error_counts_as_nothing() -> None:
    exchange, commands = kit.play([kit.text("Hel")], end=kit.broken_end(), stream=False)
    assert kit.reply(commands).status == 503
    assert exchange.report.delivered.written == NOTHING


def test_a_stream_that_fails_tells_and_counts_what_was_sent() -> None:
    exchange = thinking()
    commands = kit.upstream(exchange, kit.text("<think>Hm</think>Hi")) + kit.upstream(exchange, kit.text("<to"))
    commands += exchange.handle(kit.broken_end())
    failed = parse(kit.sent(commands))[-2]
    sent = len("<think>Hm</think>Hi")
    assert failed.type == "response.failed"
    assert failed.data["response"]["usage"]["output_tokens"] == sent
    assert Counts.of(exchange.report.delivered.written).output_tokens == sent
    assert exchange.report.usage.output_tokens == sent + len("<to")


def test_the_words_of_a_failure_add_nothing() -> None:
    exchange = answering(stream=True)
    exchange.upstream(kit.text("Hel"), 101.0)
    before = exchange.report.delivered.written
    exchange.handle(kit.broken_end())
    assert exchange.report.delivered.written == before != NOTHING
