"""What a node serves, as a value: an exchange keeps to the one it began with, a new one applies to new requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sidecar.backends.failure import Failure
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.config.models import ModelConfig
from sidecar.config.upstreams import NativeModelConfig, UpstreamConfig
from sidecar.generation.style import Style
from sidecar.prompts.renderer import PromptRenderer
from sidecar.surfaces.names import Names
from sidecar.surfaces.surface import Surface


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of Triton's: its settings, and what was made of them.

    ``style`` is how it writes. ``created`` is when its files were made, in seconds since the epoch. ``notes`` are what
    its operator and its clients should know of how it is served, a sentence each. ``contract`` is ``None`` until Triton
    has been asked. While there is an ``outage``, requests are refused with it.
    """

    settings: ModelConfig
    renderer: PromptRenderer
    style: Style
    created: int = 0
    notes: tuple[str, ...] = ()
    contract: Contract | None = None
    outage: Failure | None = None

    @property
    def name(self) -> str:
        """Its name on the wire."""
        return self.settings.name

    @property
    def ready(self) -> bool:
        """Whether requests for it are taken."""
        return self.contract is not None and self.outage is None


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a model that upstreams serve.

    ``model`` is what the upstream calls it, ``features`` are those that it is certified for. ``authorization`` is the
    header with the upstream's key, empty where it has none. While it ``rests`` requests do without it.
    """

    upstream: UpstreamConfig
    model: str
    features: frozenset[str]
    authorization: str = field(default="", repr=False)
    rests: bool = False


@dataclass(frozen=True, slots=True)
class ServedNative:
    """One model of upstreams that speak the Responses API: its settings, and the ``routes`` to it in their order."""

    settings: NativeModelConfig
    routes: tuple[Route, ...]

    @property
    def name(self) -> str:
        """Its name on the wire."""
        return self.settings.name

    @property
    def created(self) -> int:
        """When it was made is not known here."""
        return 0

    @property
    def notes(self) -> tuple[str, ...]:
        """There are none: it is served as the upstream says."""
        return ()


Served = ServedModel | ServedNative


class Catalog:
    """The models by name, and the settings that all of them share.

    ``node`` is the node's name. ``keep_alive`` is how long a stream may be silent before a comment is sent, in seconds.
    """

    def __init__(self, node: str, keep_alive: float, models: Iterable[Served]) -> None:
        self.node = node
        self.keep_alive = keep_alive
        self._models = tuple(models)
        self._by_name = {model.name: model for model in self._models}
        self._names: dict[object, Names] = {}
        self.max_request_bytes = max((model.settings.limits.max_request_bytes for model in self._models), default=0)
        """The largest body that any model takes."""

    def __iter__(self) -> Iterator[Served]:
        return iter(self._models)

    def names(self, surface: Surface) -> Names:
        """What ``surface`` calls the models; made once."""
        make = surface.names
        if make not in self._names:
            self._names[make] = make([model.settings for model in self._models])
        return self._names[make]

    def model(self, name: str) -> Served:
        """The model of this name in the configuration; raises :class:`KeyError`."""
        return self._by_name[name]

    def triton_models(self) -> list[ServedModel]:
        """Those that Triton serves."""
        return [model for model in self._models if isinstance(model, ServedModel)]

    def with_contract(self, name: str, contract: Contract) -> Catalog:
        """The same catalog, in which the model ``name``, one of Triton's, speaks ``contract``."""
        return self._with_triton_model(name, lambda model: replace(model, contract=contract))

    def with_outage(self, name: str, outage: Failure | None) -> Catalog:
        """The same catalog, in which requests for the model ``name``, one of Triton's, meet ``outage``."""
        return self._with_triton_model(name, lambda model: replace(model, outage=outage))

    def with_authorizations(self, authorizations: Mapping[str, str]) -> Catalog:
        """The same catalog, in which the upstreams of these names are sent these ``authorization`` headers."""

        def authorized(model: ServedNative, route: Route) -> Route:
            return replace(route, authorization=authorizations.get(route.upstream.name, route.authorization))

        return self._with_routes(authorized)

    def with_rest(self, name: str, upstream: str, *, rests: bool) -> Catalog:
        """The same catalog, in which the routes of the model ``name`` to an upstream rest, or no longer do."""

        def changed(model: ServedNative, route: Route) -> Route:
            return replace(route, rests=rests) if (model.name, route.upstream.name) == (name, upstream) else route

        return self._with_routes(changed)

    def resting(self) -> frozenset[tuple[str, str]]:
        """The routes that rest: models' names, and upstreams'."""
        natives = [model for model in self._models if isinstance(model, ServedNative)]
        return frozenset(
            (model.name, route.upstream.name) for model in natives for route in model.routes if route.rests
        )

    def _with_triton_model(self, name: str, change: Callable[[ServedModel], ServedModel]) -> Catalog:
        return self._with(
            change(model) if isinstance(model, ServedModel) and model.name == name else model for model in self._models
        )

    def _with_routes(self, change: Callable[[ServedNative, Route], Route]) -> Catalog:
        return self._with(
            replace(model, routes=tuple(change(model, route) for route in model.routes))
            if isinstance(model, ServedNative)
            else model
            for model in self._models
        )

    def _with(self, models: Iterable[Served]) -> Catalog:
        return Catalog(self.node, self.keep_alive, models)
