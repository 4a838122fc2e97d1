"""From a credential to whoever holds it, by what the store knows and this worker remembers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from sidecar.config.identity import IdentityConfig
from sidecar.identity.directory import Directory
from sidecar.identity.identity import Identity
from sidecar.identity.known import Known, admit
from sidecar.identity.last_used import LastUsed
from sidecar.identity.records import MICROSECONDS, by_digests
from sidecar.identity.secret import Secret
from sidecar.responses.caller import Caller
from sidecar.store import Store, now_us


class Authenticator:
    """Knows the holders of credentials in ``store``.

    ``stale``: go on with what is remembered while the store is down.
    """

    def __init__(self, store: Store, config: IdentityConfig, *, stale: bool) -> None:
        self._store = store
        self._directory = Directory(self._find, config.cache_seconds, config.negative_cache_seconds, stale=stale)
        self.last_used = LastUsed(store)

    async def identify(self, secret: Secret) -> Identity:
        """Who holds ``secret``, which is whole.

        Raises:
            ApiError: ``unauthorized``: it is unknown or counts no more. ``node_unavailable``: that cannot be told now.
        """
        digest = secret.digest
        identity = admit(digest, await self._directory.get(digest), time.monotonic())
        self.last_used.note(identity.caller.key)
        return identity

    async def _find(self, digests: Sequence[bytes]) -> Mapping[bytes, Known]:
        began = time.monotonic()

        def query(connection: Connection) -> dict[bytes, Known]:
            return find_known(connection, digests, began)

        return await self._store.read(query)


def find_known(connection: Connection, digests: Sequence[bytes], began: float) -> dict[bytes, Known]:
    """Those of ``digests`` that the store knows; ``began`` is the monotonic clock now.

    When they expire is told by the store's clock, from here on counted by this process's: a node whose clock is wrong
    keeps to it all the same.
    """
    now = now_us(connection)
    found = {}
    for digest, record, disabled in by_digests(connection, digests):
        caller = Caller(
            record.organization, record.id, record.user or "", record.project or "", record.environment or ""
        )
        expires_at = None if record.expires_at is None else began + (record.expires_at - now) / MICROSECONDS
        found[digest] = Known(
            record.kind,
            digest,
            Identity(caller, record.scopes),
            expires_at,
            revoked=record.revoked_at is not None,
            replaced=record.replaced_by is not None,
            disabled=disabled,
        )
    return found
