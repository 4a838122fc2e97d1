"""The tool-call formats by name, and which of them a model's chat template uses.

A new format is one file and one line in :data:`FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.generation.calls import Functions
from sidecar.generation.coroutine import CoroutineParser
from sidecar.generation.formats import (
    apertus,
    cohere,
    deepseek,
    deepseek_dsml,
    ernie45,
    functiongemma,
    gemma4,
    gigachat3,
    glm,
    granite,
    harmony,
    hermes,
    hunyuan,
    internlm,
    jamba,
    kimi_k2,
    kimi_k3,
    lfm2,
    llama_json,
    longcat,
    minicpm5,
    minimax_m2,
    mistral,
    nemotron,
    olmo3,
    phi4_mini,
    pythonic,
    qwen_xml,
    seed_oss,
    step3,
    xlam,
)
from sidecar.generation.formats.framing import CallFraming


@dataclass(frozen=True)
class Format:
    """One way of writing calls.

    ``make_parser`` makes the parser of one generation for the request's functions. ``markers`` must be visible in the
    detokenized text, special tokens or not. ``detect`` tells from a chat template's source whether it writes calls so.
    ``frames_all`` formats put text between markers too, so that every answer must be read with them; where one
    ``reasons``, its parser reads the reasoning too.
    ``framing`` is told where a call is its name and arguments between fixed texts.
    """

    make_parser: Callable[[Functions], CoroutineParser]
    markers: tuple[str, ...]
    detect: Callable[[str], bool]
    frames_all: bool = False
    reasons: bool = False
    framing: CallFraming | None = None


FORMATS = {
    "harmony": Format(harmony.HarmonyParser, harmony.MARKERS, harmony.detect, frames_all=True, reasons=True),
    "kimi_k3": Format(kimi_k3.KimiK3Parser, kimi_k3.MARKERS, kimi_k3.detect, frames_all=True),
    "kimi_k2": Format(kimi_k2.KimiK2Parser, kimi_k2.MARKERS, kimi_k2.detect),
    "gemma4": Format(gemma4.Gemma4Parser, gemma4.MARKERS, gemma4.detect),
    "functiongemma": Format(functiongemma.FunctionGemmaParser, functiongemma.MARKERS, functiongemma.detect),
    "deepseek_v41": Format(deepseek_dsml.DeepSeekV41Parser, deepseek_dsml.V41_MARKERS, deepseek_dsml.detect_v41),
    "deepseek_v32": Format(deepseek_dsml.DeepSeekV32Parser, deepseek_dsml.V32_MARKERS, deepseek_dsml.detect_v32),
    "gigachat35": Format(deepseek_dsml.GigaChat35Parser, deepseek_dsml.GIGACHAT_MARKERS, deepseek_dsml.detect_gigachat),
    "step3": Format(step3.Step3Parser, step3.MARKERS, step3.detect),
    "minimax_m2": Format(minimax_m2.MiniMaxM2Parser, minimax_m2.MARKERS, minimax_m2.detect),
    "seed_oss": Format(seed_oss.SeedOssParser, seed_oss.MARKERS, seed_oss.detect),
    "longcat": Format(longcat.LongCatParser, longcat.MARKERS, longcat.detect),
    "glm": Format(glm.GlmParser, glm.MARKERS, glm.detect),
    "minicpm5": Format(minicpm5.MiniCpm5Parser, minicpm5.MARKERS, minicpm5.detect),
    "qwen_xml": Format(qwen_xml.QwenXmlParser, qwen_xml.MARKERS, qwen_xml.detect),
    "ernie45": Format(ernie45.Ernie45Parser, ernie45.MARKERS, ernie45.detect, frames_all=True),
    "hermes": Format(hermes.HermesParser, hermes.MARKERS, hermes.detect, framing=hermes.FRAMING),
    "cohere": Format(cohere.CohereParser, cohere.MARKERS, cohere.detect, frames_all=True),
    "phi4_mini": Format(phi4_mini.Phi4MiniParser, phi4_mini.MARKERS, phi4_mini.detect),
    "granite": Format(granite.GraniteParser, granite.MARKERS, granite.detect),
    "nemotron": Format(nemotron.NemotronParser, nemotron.MARKERS, nemotron.detect),
    "hunyuan": Format(hunyuan.HunyuanParser, hunyuan.MARKERS, hunyuan.detect, frames_all=True),
    "jamba": Format(jamba.JambaParser, jamba.MARKERS, jamba.detect),
    "internlm": Format(internlm.InternLmParser, internlm.MARKERS, internlm.detect),
    "apertus": Format(apertus.ApertusParser, apertus.MARKERS, apertus.detect),
    "gigachat3": Format(gigachat3.GigaChat3Parser, gigachat3.MARKERS, gigachat3.detect),
    "lfm2": Format(lfm2.Lfm2Parser, lfm2.MARKERS, lfm2.detect),
    "olmo3": Format(olmo3.Olmo3Parser, olmo3.MARKERS, olmo3.detect),
    "xlam": Format(xlam.XlamParser, xlam.MARKERS, xlam.detect),
    "mistral": Format(mistral.MistralParser, mistral.MARKERS, mistral.detect),
    "deepseek": Format(deepseek.DeepSeekParser, deepseek.MARKERS, deepseek.detect),
    "pythonic": Format(pythonic.PythonicParser, pythonic.MARKERS, pythonic.detect),
    "llama_json": Format(llama_json.LlamaJsonParser, llama_json.MARKERS, llama_json.detect),
}
"""The formats by name; where a template shows several, the first is the one."""


def detect_format(template: str) -> str | None:
    """The name in :data:`FORMATS` of the format that a chat template writes; ``None`` where it writes none of them."""
    return next((name for name, known in FORMATS.items() if known.detect(template)), None)
