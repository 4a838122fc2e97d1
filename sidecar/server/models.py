"""From the settings of a model to one that can be served."""

from __future__ import annotations

from sidecar.config.models import ModelConfig, ReasoningMarkers
from sidecar.exchange.catalog import ServedModel
from sidecar.generation.reasoning import ReasoningFormat
from sidecar.generation.style import Style, choose_style
from sidecar.prompts.chat_model import load_chat_model
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import read_template


def load_model(settings: ModelConfig) -> ServedModel:
    """A model as exchanges need it; its contract is still to be discovered.

    Raises:
        ValueError: the tokenizer or its template cannot be loaded; the message names the file.
    """
    template = read_template(settings.tokenizer) or ""
    named = settings.reasoning_format
    reasoning = ReasoningFormat(named.begin, named.end) if isinstance(named, ReasoningMarkers) else named
    style = choose_style(template, reasoning=reasoning, calls=settings.tool_format)
    chat_model = load_chat_model(settings.tokenizer, style.markers)
    renderer = PromptRenderer(chat_model, late_system=settings.late_system, tools_as_text=style.calls_assumed)
    return ServedModel(
        settings=settings,
        renderer=renderer,
        style=style,
        created=int((settings.tokenizer / "tokenizer.json").stat().st_mtime),
        notes=tuple(_notes_on(renderer, style)),
    )


def _notes_on(renderer: PromptRenderer, style: Style) -> list[str]:
    """What is to be known of how a model is served, a sentence each."""
    notes = []
    if renderer.tools_unread:
        notes.append(
            "the chat template shows tools in a form that is not known; they are described in the system text instead, "
            "unless tool_format names their form"
        )
    if style.unknown_reasoning:
        markers = " and ".join(style.unknown_reasoning)
        notes.append(
            f"the chat template writes {markers}: reasoning between them is text unless reasoning_format names them"
        )
    return notes
