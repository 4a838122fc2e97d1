"""What a node serves, as a value: an exchange keeps to the one it began with, a new one applies to new requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sidecar.backends.triton.contracts.contract import Contract
from sidecar.config.models import ModelConfig
from sidecar.generation.style import Style
from sidecar.prompts.renderer import PromptRenderer
from sidecar.surfaces.names import Names
from sidecar.surfaces.surface import Surface


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model: its settings, and what was made of them.

    ``style`` is how it writes. ``created`` is when its files were made, in seconds since the epoch. ``notes`` are what
    its operator and its clients should know of how it is served, a sentence each. ``contract`` is ``None`` until Triton
    has been asked.
    """

    settings: ModelConfig
    renderer: PromptRenderer
    style: Style
    created: int = 0
    notes: tuple[str, ...] = ()
    contract: Contract | None = None

    @property
    def name(self) -> str:
        """Its name on the wire."""
        return self.settings.name


class Catalog:
    """The models by name, and the settings that all of them share.

    ``node`` is the node's name. ``keep_alive`` is how long a stream may be silent before a comment is sent, in seconds.
    """

    def __init__(self, node: str, keep_alive: float, models: Iterable[ServedModel]) -> None:
        self.node = node
        self.keep_alive = keep_alive
        self._models = tuple(models)
        self._by_name = {model.name: model for model in self._models}
        self._names: dict[object, Names] = {}
        self.max_request_bytes = max((model.settings.limits.max_request_bytes for model in self._models), default=0)
        """The largest body that any model takes."""

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models)

    def names(self, surface: Surface) -> Names:
        """What ``surface`` calls the models; made once."""
        make = surface.names
        if make not in self._names:
            self._names[make] = make([model.settings for model in self._models])
        return self._names[make]

    def model(self, name: str) -> ServedModel:
        """The model of this name in the configuration; raises :class:`KeyError`."""
        return self._by_name[name]

    def with_contract(self, name: str, contract: Contract) -> Catalog:
        """The same catalog, in which the model ``name`` speaks ``contract``."""
        models = (replace(model, contract=contract) if model.name == name else model for model in self._models)
        return Catalog(self.node, self.keep_alive, models)
