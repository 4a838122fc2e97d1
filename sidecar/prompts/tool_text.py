"""Function tools in plain text, for models whose template knows none.

The form is the one that most open models with tools were trained on: definitions and calls as JSON between tags.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sidecar.prompts.template import Turn

_INTRODUCTION = """# Tools

You can call the functions that are described below, each as one JSON object:
<tools>
"""
_CALLING = """
</tools>

To call a function, answer with a JSON object that holds its name and its arguments, between tags:
<tool_call>
{"name": "…", "arguments": {…}}
</tool_call>"""


def describe_tools(tools: Sequence[dict[str, Any]]) -> str:
    """System text that lists ``tools``, of the shape of chat completions, and says how to call them."""
    return _INTRODUCTION + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools) + _CALLING


def without_tool_turns(turns: Sequence[Turn]) -> list[Turn]:
    """The same turns with calls in the assistant's text, and results, adjacent ones together, in a user turn."""
    plain: list[Turn] = []
    for is_result, run in groupby(turns, key=lambda turn: turn["role"] == "tool"):
        if is_result:
            results = [f"<tool_response>\n{turn['content']}\n</tool_response>" for turn in run]
            plain.append({"role": "user", "content": "\n".join(results)})
        else:
            plain += map(_with_calls_as_text, run)
    return plain


def _with_calls_as_text(turn: Turn) -> Turn:
    if "tool_calls" not in turn:
        return turn
    texts = [turn["content"]] if turn["content"] else []
    texts += [_call(call["function"]) for call in turn["tool_calls"]]
    return _without_calls(turn) | {"content": "\n".join(texts)}


def _call(function: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps(function, ensure_ascii=False)}\n</tool_call>"


def _without_calls(turn: Turn) -> Turn:
    return {key: value for key, value in turn.items() if key != "tool_calls"}
