"""From the settings of the models to those that can be served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sidecar.config.load import ConfigError
from sidecar.config.models import ModelConfig, ReasoningMarkers
from sidecar.config.upstreams import NativeModelConfig, UpstreamConfig
from sidecar.exchange.catalog import Route, Served, ServedModel, ServedNative
from sidecar.generation.reasoning import ReasoningFormat
from sidecar.generation.style import NONE, Style, choose_style
from sidecar.prompts.chat_model import load_chat_model
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import read_template


def load_models(
    models: Iterable[ModelConfig | NativeModelConfig], upstreams: Sequence[UpstreamConfig] = ()
) -> list[Served]:
    """All models of a configuration; the keys of its ``upstreams`` are still to be read.

    Raises:
        ConfigError: some cannot be served; the message has a line for each.
    """
    loaded: list[Served] = []
    faults = []
    for index, settings in enumerate(models):
        if isinstance(settings, NativeModelConfig):
            loaded.append(_native_model(settings, upstreams))
            continue
        try:
            loaded.append(load_model(settings, index))
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return loaded


def load_model(settings: ModelConfig, index: int = 0) -> ServedModel:
    """The model ``index`` of a configuration as exchanges need it; its contract is still to be discovered.

    Raises:
        ConfigError: it names a format that does not exist, or its tokenizer or chat template cannot be used; the
            message begins with the key's path.
    """
    key = f"models[{index}]"
    with _fault_of(f"{key}.tokenizer"):
        template = read_template(settings.tokenizer) or ""
    named = settings.reasoning_format
    reasoning = ReasoningFormat(named.begin, named.end) if isinstance(named, ReasoningMarkers) else named
    with _fault_of(f"{key}.reasoning_format"):
        choose_style(template, reasoning=reasoning, calls=NONE)
    with _fault_of(f"{key}.tool_format"):
        style = choose_style(template, reasoning=reasoning, calls=settings.tool_format)
    with _fault_of(f"{key}.tokenizer"):
        chat_model = load_chat_model(settings.tokenizer, style.markers)
        created = int((settings.tokenizer / "tokenizer.json").stat().st_mtime)
    renderer = PromptRenderer(chat_model, late_system=settings.late_system, tools_as_text=style.calls_assumed)
    return ServedModel(
        settings=settings,
        renderer=renderer,
        style=style,
        created=created,
        notes=tuple(_notes_on(renderer, style)),
    )


def _native_model(settings: NativeModelConfig, upstreams: Sequence[UpstreamConfig]) -> ServedNative:
    by_name = {upstream.name: upstream for upstream in upstreams}
    return ServedNative(
        settings,
        tuple(Route(by_name[route.upstream], route.model, frozenset(route.features)) for route in settings.routes),
    )


@contextmanager
def _fault_of(key: str) -> Iterator[None]:
    """What fails inside is the fault of the setting ``key``."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: {error}") from error


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
