"""Control markers of chat templates: text that a server has to understand, and never to show.

A model may write one because it was asked about it. The probes do not ask, so in their answers a marker means that the
server did not parse what the model generated, or did not stop it. What only ever stands in prompts, as around the
output of a tool, is none of these: a small model repeats it as it repeats any other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from conformance.rules import Violation
from conformance.shapes import Json

_BY_FAMILY = {
    "ChatML": "<|im_start|> <|im_end|> <|endoftext|>",
    "thinking": "<think> </think> [THINK] [/THINK] <seed:think> </seed:think>",
    "Hermes and Qwen": "<tool_call> </tool_call>",
    "Qwen Coder": "<function= </function> <parameter= </parameter>",
    "Llama": (
        "<|begin_of_text|> <|end_of_text|> <|eot_id|> <|eom_id|> <|start_header_id|> <|end_header_id|> "
        "<|python_tag|> <|python_start|> <|python_end|> <|header_start|> <|header_end|> <|eot|> <|eom|>"
    ),
    "Mistral": "[TOOL_CALLS] [ARGS] [CALL_ID] [INST] [/INST] </s>",
    "Harmony": "<|start|> <|channel|> <|constrain|> <|message|> <|call|> <|return|> <|end|>",
    "DeepSeek": (
        "<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁sep｜> "
        "<｜DSML｜ <｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜>"
    ),
    "Kimi": (
        "<|tool_calls_section_begin|> <|tool_calls_section_end|> <|tool_call_begin|> "
        "<|tool_call_argument_begin|> <|tool_call_end|> <|im_middle|>"
    ),
    "GLM and Phi": (
        "<|user|> <|assistant|> <|system|> <|observation|> <arg_key> <arg_value> <|tool|> <|/tool|> <|tool_calls|>"
    ),
    "Gemma": "<start_of_turn> <end_of_turn> <start_function_call> <end_function_call>",
    "Granite": "<|start_of_role|> <|end_of_role|> <|tool_call|>",
    "Command": (
        "<|START_ACTION|> <|END_ACTION|> <|START_RESPONSE|> <|END_RESPONSE|> <|START_THINKING|> "
        "<|END_THINKING|> <|START_TEXT|> <|END_TEXT|> <|END_OF_TURN_TOKEN|>"
    ),
    "Nemotron": "<TOOLCALL> </TOOLCALL>",
    "MiniMax": "<minimax:tool_call> </minimax:tool_call>",
}

MARKERS = {family: tuple(markers.split()) for family, markers in _BY_FAMILY.items()}
"""The markers that models write, by the families that use them."""

_MARKER = re.compile("|".join(re.escape(marker) for markers in MARKERS.values() for marker in markers))
_HOLDERS = ("name", "arguments", "input", "text", "refusal")
"""The members of items and parts that hold what the model generated."""


def check_markers(response: Json) -> Iterator[Violation]:
    """Look for control markers in the texts, reasoning and calls of a response."""
    output = response.get("output")
    for at, item in enumerate(output if isinstance(output, list) else []):
        for path, text in _texts(item, f"output[{at}]"):
            if (marker := _MARKER.search(text)) is not None:
                yield Violation("control-markers", f"{path} has {marker[0]}")


def _texts(item: Any, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(item, dict):
        return
    yield from ((f"{path}.{name}", item[name]) for name in _HOLDERS if isinstance(item.get(name), str))
    for holder in ("content", "summary"):
        parts = item.get(holder)
        for at, part in enumerate(parts if isinstance(parts, list) else []):
            yield from _texts(part, f"{path}.{holder}[{at}]")
