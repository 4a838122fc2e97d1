"""The catalog: models by slug, by their teams' aliases and by their vendors' own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.config.model import AnyModelConfig, TeamAlias
from sidecar.responses.errors import ApiError
from sidecar.responses.wording import shown
from sidecar.surfaces.names import Named


class CatalogNames:
    """The names of the ``models`` that have an entry in the catalog.

    Slugs come first, then the aliases that a team may use, then vendors' own names. Answers call a model by its slug.
    """

    def __init__(self, models: Sequence[AnyModelConfig]) -> None:
        self._by_slug: dict[str, Named] = {}
        self._aliases: dict[str, list[tuple[TeamAlias, Named]]] = {}
        self._by_vendor_name: dict[str, list[Named]] = {}
        self._elsewhere: set[str] = set()
        for model in models:
            entry = model.catalog
            if entry is None:
                self._elsewhere.update((model.name, *model.aliases))
                continue
            vendor, _, rest = entry.slug.partition("/")
            named = Named(model.name, entry.slug, vendor)
            self._by_slug[entry.slug] = named
            self._by_vendor_name.setdefault(entry.vendor_name or rest, []).append(named)
            for alias in entry.aliases:
                self._aliases.setdefault(alias.name, []).append((alias, named))

    def find(self, name: str, team: str) -> Named:
        """See :class:`sidecar.surfaces.names.Names`.

        Raises:
            ApiError: ``model_not_available``: there is none. ``invalid_request``: it is not served by this surface, or
                it is one vendor's own name and another's.
        """
        if (named := self._by_slug.get(name)) is not None:
            return named
        if (found := self._alias(name, team)) is not None:
            return found[1]
        candidates = self._by_vendor_name.get(name, [])
        if len(candidates) > 1:
            slugs = " and ".join(candidate.told for candidate in candidates)
            raise ApiError("invalid_request", f"{shown(name)} is the name of {slugs}; ask for one of them.", "model")
        if candidates:
            return candidates[0]
        if name in self._elsewhere:
            raise ApiError(
                "invalid_request", f"{shown(name)} has no route that is certified for this endpoint.", "model"
            )
        raise ApiError("model_not_available", f"{shown(name)} is not in the catalog.", "model")

    def listed(self, team: str) -> Iterable[str]:
        """The slugs in order."""
        return self._by_slug

    def preset(self, name: str, team: str) -> Mapping[str, Any]:
        """The values of an alias."""
        found = None if name in self._by_slug else self._alias(name, team)
        return found[0].preset.model_dump(exclude_none=True) if found else {}

    def _alias(self, name: str, team: str) -> tuple[TeamAlias, Named] | None:
        """The alias of this name that is the team's own, or else everybody's."""
        found = {alias.team: (alias, named) for alias, named in self._aliases.get(name, ())}
        return found.get(team) or found.get(None)
