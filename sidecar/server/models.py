"""From the configuration of a model, and its files, to what exchanges need of it."""

from __future__ import annotations

from sidecar.config.models import ModelConfig, ReasoningMarkers
from sidecar.exchange.models import ServedModel
from sidecar.generation.reasoning import ReasoningFormat
from sidecar.generation.style import choose_style
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import Tokenizer, read_template


def load_model(config: ModelConfig) -> ServedModel:
    """A model as exchanges need it; its contract is still to be discovered.

    Raises:
        OSError, ValueError: the tokenizer or its template cannot be loaded.
    """
    template = read_template(config.tokenizer) or ""
    named = config.reasoning_format
    reasoning = ReasoningFormat(named.begin, named.end) if isinstance(named, ReasoningMarkers) else named
    style = choose_style(template, reasoning=reasoning, calls=config.tool_format)
    tokenizer = Tokenizer.load(config.tokenizer, style.markers)
    return ServedModel(
        name=config.name,
        aliases=config.aliases,
        created=int((config.tokenizer / "tokenizer.json").stat().st_mtime),
        triton_model=config.triton_model,
        context_length=config.context_length,
        limits=config.limits,
        stop=config.stop,
        first_token_timeout=config.first_token_timeout,
        token_timeout=config.token_timeout,
        renderer=PromptRenderer(tokenizer, late_system=config.late_system),
        style=style,
        unguided=config.unguided,
    )
