"""``docs/models.md`` tells what the code does."""

from __future__ import annotations

import re

from sidecar.generation.formats import FORMATS
from sidecar.generation.reasoning import REASONING
from stack.paths import ROOT
from tests.core.generation.segments_kit import call, found, run

INTRODUCTION, REASONING_SECTION, CALLS_SECTION, *_ = re.split(
    r"^##+ .*$", (ROOT / "docs" / "models.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table, without its heading."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_families_use_formats_that_there_are() -> None:
    for _, _, reasoning, tools, _ in rows(INTRODUCTION):
        assert set(code(reasoning)) <= REASONING.keys()
        assert set(code(tools)) <= FORMATS.keys()


def test_every_format_has_a_family() -> None:
    families = rows(INTRODUCTION)
    assert {name for family in families for name in code(family[2])} == REASONING.keys()
    assert {name for family in families for name in code(family[3])} == FORMATS.keys()


def test_reasoning_has_the_markers_that_the_document_names() -> None:
    documented = {code(name)[0]: (code(begin)[0], code(end)[0]) for name, begin, end in rows(REASONING_SECTION)}
    assert documented == {name: (known.begin, known.end) for name, known in REASONING.items()}


def test_the_calls_of_the_document_are_calls() -> None:
    documented = {code(name)[0]: code(example)[0] for name, example in rows(CALLS_SECTION)}
    assert list(documented) == list(FORMATS)
    for name, example in documented.items():
        assert found(run(FORMATS[name].make_parser({"f": {"type": "object"}}), [example])) == [call("f", '{"a": 1}')]
