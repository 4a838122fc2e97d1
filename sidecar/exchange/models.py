"""The models a node serves, as an exchange needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sidecar.backends.triton.contracts.contract import Contract
from sidecar.config.models import RequestLimits
from sidecar.generation.style import Style
from sidecar.guidance.decision import Unguided
from sidecar.prompts.renderer import PromptRenderer
from sidecar.responses.errors import ApiError


@dataclass(slots=True)
class ServedModel:
    """One model: its names on the wire, where Triton has it, and its limits.

    ``aliases`` are further names for it. ``created`` is when its files were made, in seconds since the epoch.
    ``context_length`` is in tokens, prompt and answer together. ``first_token_timeout`` and ``token_timeout`` are the
    longest silences allowed, in seconds. ``style`` is how it writes, ``unguided`` what becomes of a demanded call or
    schema where its runtime cannot guide. ``contract`` is ``None`` until Triton has been asked.
    """

    name: str
    triton_model: str
    context_length: int
    limits: RequestLimits
    stop: tuple[str, ...]
    first_token_timeout: float
    token_timeout: float
    renderer: PromptRenderer
    style: Style
    unguided: Unguided = "refuse"
    aliases: tuple[str, ...] = ()
    created: int = 0
    contract: Contract | None = None


class ModelCatalog:
    """The node's models by name and alias."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._models = tuple(models)
        self._by_name = {name: model for model in self._models for name in (model.name, *model.aliases)}
        self.max_request_bytes = max((model.limits.max_request_bytes for model in self._models), default=0)
        """The largest body that any model takes."""

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models)

    def names(self) -> Iterable[str]:
        """Every name that clients may ask for: the models in order, each one's aliases after its name."""
        return self._by_name

    def find(self, name: str) -> ServedModel:
        """The model that serves ``name``.

        Raises:
            ApiError: ``model_not_available``.
        """
        model = self._by_name.get(name)
        if model is None:
            shown = name if len(name) <= 64 and name.isprintable() else "The model"
            raise ApiError("model_not_available", f"{shown} is not served on this node", "model")
        return model
