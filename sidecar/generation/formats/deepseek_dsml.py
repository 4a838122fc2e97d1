"""DeepSeek V3.2 to V4.1, GigaChat 3.5: a tag per parameter with its bare value; an attribute tells strings from JSON.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="f">
    <｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

V4 and GigaChat name the outer tag ``tool_calls``; V4.1 names it ``calls``, and puts a space after the tags' common
beginning; GigaChat's word is ``GCML``. Source: the encoding code that DeepSeek publishes beside these models, which
have no chat template of their own, the templates that others made of it, and what SGLang's detector of
GigaChat 3.5 reads.
"""

from __future__ import annotations

from sidecar.generation.shapes.tagged import TaggedParser

_WORD, _SPACED, _GIGACHAT = "｜DSML｜", "｜DSML｜ ", "｜GCML｜"
_V32_BEFORE = (f"<{_WORD}function_calls>", f"<{_WORD}tool_calls>")
_V32_AFTER = (f"</{_WORD}function_calls>", f"</{_WORD}tool_calls>")
_V41_BEFORE, _V41_AFTER = (f"<{_SPACED}calls>",), (f"</{_SPACED}calls>",)
_GIGACHAT_BEFORE, _GIGACHAT_AFTER = (f"<{_GIGACHAT}tool_calls>",), (f"</{_GIGACHAT}tool_calls>",)
V32_MARKERS = (_WORD, *_V32_BEFORE, *_V32_AFTER)
V41_MARKERS = (_WORD, *_V41_BEFORE, *_V41_AFTER)
GIGACHAT_MARKERS = (_GIGACHAT, *_GIGACHAT_BEFORE, *_GIGACHAT_AFTER)


class DeepSeekV32Parser(TaggedParser):
    """Reads text with such calls."""

    call_tag = f'<{_WORD}invoke name="'
    call_end = f"</{_WORD}invoke>"
    parameter_tag = f'<{_WORD}parameter name="'
    parameter_end = f"</{_WORD}parameter>"
    before = _V32_BEFORE
    after = _V32_AFTER


class DeepSeekV41Parser(TaggedParser):
    """Reads text with such calls as V4.1 spells them."""

    call_tag = f'<{_SPACED}invoke name="'
    call_end = f"</{_SPACED}invoke>"
    parameter_tag = f'<{_SPACED}parameter name="'
    parameter_end = f"</{_SPACED}parameter>"
    before = _V41_BEFORE
    after = _V41_AFTER


class GigaChat35Parser(TaggedParser):
    """Reads text with such calls as GigaChat 3.5 spells them."""

    call_tag = f'<{_GIGACHAT}invoke name="'
    call_end = f"</{_GIGACHAT}invoke>"
    parameter_tag = f'<{_GIGACHAT}parameter name="'
    parameter_end = f"</{_GIGACHAT}parameter>"
    before = _GIGACHAT_BEFORE
    after = _GIGACHAT_AFTER


def detect_v32(template: str) -> bool:
    """Whether a chat template writes calls as DeepSeek V3.2 and V4 do."""
    return _WORD in template and not detect_v41(template)


def detect_v41(template: str) -> bool:
    """Whether a chat template writes calls as DeepSeek V4.1 does."""
    return _SPACED in template


def detect_gigachat(template: str) -> bool:
    """Whether a chat template writes calls as GigaChat 3.5 does."""
    return _GIGACHAT in template
