"""The models a node serves, as an exchange needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sidecar.prompts.renderer import PromptRenderer
from sidecar.responses.errors import ApiError
from sidecar.surfaces.limits import RequestLimits
from sidecar.triton.contracts.contract import Contract


@dataclass(slots=True)
class ServedModel:
    """One model: its name on the wire, where Triton has it, and its limits.

    ``context_length`` is in tokens, prompt and answer together. ``first_token_timeout`` and ``token_timeout`` are the
    longest silences allowed, in seconds. ``contract`` is ``None`` until Triton has been asked.
    """

    name: str
    triton_model: str
    context_length: int
    limits: RequestLimits
    stop: tuple[str, ...]
    first_token_timeout: float
    token_timeout: float
    renderer: PromptRenderer
    contract: Contract | None = None


class ModelCatalog:
    """The node's models by name."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._by_name = {model.name: model for model in models}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._by_name.values())

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
