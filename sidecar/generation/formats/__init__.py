"""The tool-call formats by name, and which of them a model's chat template uses.

A new format is one file and one line in :data:`FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.generation.calls import Functions
from sidecar.generation.coroutine import CoroutineParser
from sidecar.generation.formats import deepseek, harmony, hermes, llama_json, mistral, pythonic, qwen_xml


@dataclass(frozen=True)
class Format:
    """One way of writing calls.

    ``make_parser`` makes the parser of one generation for the request's functions. ``markers`` must be visible in the
    detokenized text, special tokens or not. ``detect`` tells from a chat template's source whether it writes calls so.
    ``frames_all`` formats put reasoning and text between markers too, so that every answer must be read with them.
    """

    make_parser: Callable[[Functions], CoroutineParser]
    markers: tuple[str, ...]
    detect: Callable[[str], bool]
    frames_all: bool = False


FORMATS = {
    "harmony": Format(harmony.HarmonyParser, harmony.MARKERS, harmony.detect, frames_all=True),
    "qwen_xml": Format(qwen_xml.QwenXmlParser, qwen_xml.MARKERS, qwen_xml.detect),
    "hermes": Format(hermes.HermesParser, hermes.MARKERS, hermes.detect),
    "mistral": Format(mistral.MistralParser, mistral.MARKERS, mistral.detect),
    "deepseek": Format(deepseek.DeepSeekParser, deepseek.MARKERS, deepseek.detect),
    "pythonic": Format(pythonic.PythonicParser, pythonic.MARKERS, pythonic.detect),
    "llama_json": Format(llama_json.LlamaJsonParser, llama_json.MARKERS, llama_json.detect),
}
"""The formats by name; where a template shows several, the first is the one."""


def detect_format(template: str) -> str | None:
    """The name in :data:`FORMATS` of the format that a chat template writes; ``None`` where it writes none of them."""
    return next((name for name, known in FORMATS.items() if known.detect(template)), None)
