"""Names of models as commands take them: one that is mistyped is told, one that other nodes serve is taken."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sidecar.config.model import AnyModelConfig


def doubt(name: str, models: Sequence[AnyModelConfig]) -> str | None:
    """Why ``name`` is probably not meant, in words for a person; ``None`` where one of ``models`` has it.

    It may be right all the same: nodes that share a store need not serve the same models.
    """
    names = [model.name for model in models]
    if name in names:
        return None
    for model in models:
        if name in model.aliases:
            return f"{name} is an alias of {model.name}; limits hold for the name of a model, not for its aliases."
    aliases = [alias for model in models for alias in model.aliases]
    near = get_close_matches(name, names + aliases) or names
    return f"The configuration has no model {name}. It has {', '.join(near)}."
