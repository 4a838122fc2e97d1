"""The example of the exchange runs, is short, and shows a whole life."""

from __future__ import annotations

import re
import runpy

import pytest

from stack.paths import ROOT

EXAMPLE = ROOT / "examples" / "drive_the_exchange.py"


def test_the_example_shows_a_whole_life(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    assert re.findall(r"^(\w+) → (\w+)$", shown, re.MULTILINE) == [
        ("RequestComplete", "Preparing"),
        ("Answered", "Calling"),
        ("UpstreamBytes", "Answering"),
        ("UpstreamBytes", "Answering"),
        ("UpstreamBytes", "Answering"),
        ("UpstreamEnd", "Ended"),
    ]
    assert "<system>Be brief.\\n<user>Hello?\\n<assistant>" in shown
    assert re.findall(r'"delta":"(.*?)"', shown) == ["Hello", ", world!"]
    assert shown.rstrip().endswith("Finish Finish()")


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 70
