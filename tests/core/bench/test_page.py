"""The tables of a page are replaced between their marks, and nothing else is."""

import pytest

from bench.page import PAGE, rewritten

TEXT = """# Title

<!-- bench: one -->
old
<!-- bench: end -->

prose

<!-- bench: two -->
<!-- bench: end -->
end
"""


def test_a_section_is_replaced_and_the_prose_stays() -> None:
    assert rewritten(TEXT, {"one": "\n| new \\1 |\n\n"}) == TEXT.replace("old", "| new \\1 |")


def test_an_empty_section_takes_what_comes() -> None:
    assert "<!-- bench: two -->\nx\n<!-- bench: end -->\nend\n" in rewritten(TEXT, {"two": "x"})


def test_writing_twice_is_writing_once() -> None:
    once = rewritten(TEXT, {"one": "x", "two": "y"})
    assert rewritten(once, {"one": "x", "two": "y"}) == once


def test_a_section_that_the_page_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="three"):
        rewritten(TEXT, {"three": ""})


def test_the_page_has_the_sections_that_the_bench_writes() -> None:
    page = PAGE.read_text()
    assert rewritten(page, {"loads": "x", "chain": "y"}) != page
