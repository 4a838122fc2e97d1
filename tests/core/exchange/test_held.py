"""What an answer under way holds in memory: its text, once, and little besides."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from sidecar.generation.style import Style
from tests.core import kit
from tests.core.exchange.test_cost import PLAIN, REASONING_AND_TOOLS, TOOL, answering

TOKENS = 5_000
MOST_PER_TOKEN = 80
"""Bytes for a token of nine characters: an object for its text, and its place in a list."""
MOST_PER_STREAM = 32_000
"""Bytes before there is any text to speak of."""


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    # What is shared and made with the first stream is not counted.
    answering(REASONING_AND_TOOLS, "Hi", tools=[TOOL])
    tracemalloc.start()
    yield
    tracemalloc.stop()


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(
    ("style", "before"),
    [(PLAIN, "Hi"), (REASONING_AND_TOOLS, "Hi"), (REASONING_AND_TOOLS, "<think>")],
    ids=["text", "text with tools", "reasoning"],
)
def test_a_stream_holds_its_text_once(style: Style, before: str) -> None:
    start = held()
    exchange = answering(style, before, tools=[TOOL])
    assert held() - start <= MOST_PER_STREAM
    for part in range(2):
        start = held()
        for index in range(TOKENS):
            exchange.upstream(kit.text(f" word{1000 + index % 1000}"), 101.0)
        assert held() - start <= MOST_PER_TOKEN * TOKENS, part
    assert exchange.report.usage.output_tokens > 2 * TOKENS
