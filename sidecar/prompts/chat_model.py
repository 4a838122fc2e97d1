"""What the files of a model say about its prompts: tokenizer and chat template, read and probed once per directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

import jinja2

from sidecar.prompts.features import TemplateFeatures, detect_features
from sidecar.prompts.guard import MarkerGuard
from sidecar.prompts.template import ChatTemplate
from sidecar.prompts.tokenizer import FILES, Tokenizer


@dataclass(frozen=True, eq=False)
class ChatModel:
    """A tokenizer with its chat template, what that can take, and the guard of its markers. Safe in any thread."""

    tokenizer: Tokenizer
    template: ChatTemplate
    features: TemplateFeatures
    guard: MarkerGuard

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> ChatModel:
        """Compile and probe the tokenizer's chat template; raises :class:`ValueError` when it has no usable one."""
        source = tokenizer.template_source
        if source is None:
            raise ValueError("the tokenizer has no chat template")
        try:
            template = ChatTemplate(source, bos_token=tokenizer.bos_token, eos_token=tokenizer.eos_token)
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(f"line {error.lineno} of the chat template: {error.message}") from error
        return cls(tokenizer, template, detect_features(template), MarkerGuard(tokenizer.markers()))


_Key = tuple[Path, frozenset[str], tuple[object, ...]]

_loaded: WeakValueDictionary[_Key, ChatModel] = WeakValueDictionary()
_lock = Lock()


def load_chat_model(directory: Path | str, visible: Iterable[str] = ()) -> ChatModel:
    """The model of a tokenizer directory; the same object for as long as someone has it and its files are unchanged.

    ``visible`` as for :meth:`Tokenizer.load`.

    Raises:
        ValueError: a file is missing or cannot be used; the message names it.
    """
    resolved = Path(directory).resolve()
    markers = frozenset(visible)
    key = resolved, markers, tuple(map(_version, (resolved / name for name in FILES)))
    with _lock:
        model = _loaded.get(key)
        if model is None:
            model = _loaded[key] = _load(Path(directory), markers)
    return model


def _load(directory: Path, visible: frozenset[str]) -> ChatModel:
    tokenizer = Tokenizer.load(directory, visible)
    try:
        return ChatModel.of(tokenizer)
    except ValueError as error:
        raise ValueError(f"{tokenizer.template_path or directory}: {error}") from error


def _version(path: Path) -> tuple[int, int] | None:
    """What changes when the file does; ``None`` where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
