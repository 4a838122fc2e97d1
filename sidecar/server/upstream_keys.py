"""Keeps the keys of upstreams in the catalog those that their files hold now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from sidecar.config.load import ConfigError, read_upstream_key
from sidecar.config.upstreams import UpstreamConfig
from sidecar.exchange.catalog import Catalog
from sidecar.extproc.sessions import Sessions

_LOOK_SECONDS = 2.0

_log = logging.getLogger(__name__)


class UpstreamKeys:
    """Reads the key files again and again: a key is changed by writing another one into its file.

    A file that cannot be read or holds no key is told once, and the key that was there last stays in use.
    """

    def __init__(self, upstreams: Sequence[UpstreamConfig]) -> None:
        self._upstreams = upstreams
        self._authorizations: dict[str, str] = {}
        self._told: dict[str, str] = {}

    def read_into(self, catalog: Catalog) -> Catalog:
        """``catalog`` with the keys of now; the same one where none has changed since they were last read."""
        found = {}
        for upstream in self._upstreams:
            try:
                key = read_upstream_key(upstream)
            except ConfigError as error:
                self._tell(upstream.name, str(error))
                continue
            self._told.pop(upstream.name, None)
            found[upstream.name] = f"Bearer {key}" if key else ""
        changed = {name: value for name, value in found.items() if self._authorizations.get(name) != value}
        if not changed:
            return catalog
        self._authorizations.update(changed)
        return catalog.with_authorizations(changed)

    async def keep(self, sessions: Sessions) -> None:
        """Keep the catalog of ``sessions`` up to date, until cancelled."""
        while any(upstream.key_file is not None for upstream in self._upstreams):
            await asyncio.sleep(_LOOK_SECONDS)
            sessions.catalog = self.read_into(sessions.catalog)

    def _tell(self, name: str, words: str) -> None:
        """Warn of what has changed."""
        if self._told.get(name) != words:
            self._told[name] = words
            _log.warning("upstream %s: %s; the key that was read last stays in use", name, words)
