"""What a surface calls the models: from the name that a request asks for to the model, and the names it lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sidecar.config.model import AnyModelConfig
from sidecar.responses.errors import ApiError


@dataclass(frozen=True, slots=True)
class Named:
    """A model that was found: ``model`` is its name in the configuration, ``told`` what answers call it.

    ``owner`` is whose it is, empty for the node's own.
    """

    model: str
    told: str
    owner: str = ""


class Names(Protocol):
    """The names of one surface. ``team`` is the id of the organization that asks, empty where nobody knows it."""

    def find(self, name: str, team: str) -> Named:
        """The model that ``name`` asks for.

        Raises:
            ApiError: there is none, or none that this surface serves.
        """

    def listed(self, team: str) -> Iterable[str]:
        """The names that are told to whoever asks for a list."""

    def preset(self, name: str, team: str) -> Mapping[str, Any]:
        """The values of parameters that a request for ``name`` leaves out; empty for most names."""


@dataclass(frozen=True)
class OwnNames:
    """Each model by its name in the configuration and by its aliases; answers call it as the request did."""

    models: Iterable[AnyModelConfig]
    _by_name: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_name.update({name: model.name for model in self.models for name in (model.name, *model.aliases)})

    def find(self, name: str, team: str) -> Named:
        """See :class:`Names`; raises ``model_not_available``."""
        if name not in self._by_name:
            told = name if len(name) <= 64 and name.isprintable() else "The model"
            raise ApiError("model_not_available", f"{told} is not served on this node", "model")
        return Named(self._by_name[name], name)

    def listed(self, team: str) -> Iterable[str]:
        """The models in order, each one's aliases after its name."""
        return self._by_name

    def preset(self, name: str, team: str) -> Mapping[str, Any]:
        """Nothing."""
        return {}


def with_defaults(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with ``defaults`` for what is absent or null in them, in objects member by member."""
    merged = dict(values)
    for name, default in defaults.items():
        value = merged.get(name)
        if value is None:
            merged[name] = default
        elif isinstance(value, dict) and isinstance(default, Mapping):
            merged[name] = with_defaults(value, default)
    return merged
