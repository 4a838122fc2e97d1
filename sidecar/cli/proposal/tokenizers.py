"""Tokenizer directories: where they are, what they say of their model, and which of them is a model's."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sidecar.backends.triton.client import ListedModel
from sidecar.prompts.tokenizer import Tokenizer

_FILE = "tokenizer.json"
# A hub's cache has them five levels below it.
_LEVELS = 6
# The directory of a model in a hub's cache, whose own name says nothing: models--vendor--name/snapshots/revision.
_CACHED = re.compile(r"models--.+--(?P<name>[^/]+)/snapshots/[^/]+$")
_HINT = "tokenizer_dir"


def find_tokenizers(directories: Iterable[Path]) -> list[Path]:
    """The tokenizer directories in ``directories`` and down to six levels below; links to directories are not followed.

    Each of ``directories`` may be one itself.
    """
    return sorted({found for directory in directories for found in _below(directory.resolve())})


def _below(directory: Path) -> Iterator[Path]:
    for place, inner, files in os.walk(directory):
        if _FILE in files:
            yield Path(place)
        if len(Path(place).relative_to(directory).parts) == _LEVELS:
            inner.clear()


def told_directories(models: Iterable[ListedModel]) -> list[Path]:
    """The tokenizer directories that models of Triton name in their configurations and that are on this machine too."""
    told = {Path(name) for model in models if (name := model.parameters.get(_HINT))}
    return sorted(path for path in told if (path / _FILE).is_file())


def choose_tokenizer(model: ListedModel, found: Sequence[Path], told: Sequence[Path]) -> list[Path]:
    """The directories that may be the model's; it is known where it is one.

    It is the one that the model's configuration names, else the one whose name has the model's name in it or the other
    way round, else the only one that another model of the same Triton names, else the only one there is.
    """
    own = Path(model.parameters.get(_HINT, ""))
    if own in told:
        return [own]
    named = [path for path in found if _alike(model_name(path), model.name)]
    return next((list(paths) for paths in (named, told) if len(paths) == 1), list(found))


def model_name(directory: Path) -> str:
    """What a tokenizer directory calls its model: its own name, or in a hub's cache that of the repository."""
    cached = _CACHED.search(str(directory))
    return cached["name"] if cached else directory.name


def _alike(one: str, other: str) -> bool:
    first, second = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (one, other))
    return bool(first and second) and (first in second or second in first)


def context_length(directory: Path) -> int | None:
    """The longest prompt and answer together, in tokens, by the model's files; ``None`` where they do not tell it.

    Raises:
        ValueError: the tokenizer cannot be read; the message names the file.
    """
    told = [Tokenizer.load(directory).model_max_length, _positions(directory / "config.json")]
    return min((length for length in told if length is not None), default=None)


def _positions(path: Path) -> int | None:
    """``max_position_embeddings`` of a model's own configuration, which a model of several kinds has one level down."""
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    for section in (config, config.get("text_config")) if isinstance(config, dict) else ():
        positions = section.get("max_position_embeddings") if isinstance(section, dict) else None
        if isinstance(positions, int):
            return positions
    return None
