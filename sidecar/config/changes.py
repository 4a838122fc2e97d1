"""What a changed configuration comes to while the sidecar runs, and what of it counts from the next start only."""

from __future__ import annotations

import re
from typing import NamedTuple

from sidecar.config.load import read_store_url
from sidecar.config.models import Config

FIXED = ("node", "workers", "sockets", "accounts", "currency")
"""Keys that are as they were at the start: workers before and after a change share what these say."""

FIXED_OF_STORE = ("state", "url", "when_down")
"""The same below ``store``. A changed password is no other URL."""

_PASSWORD = re.compile(r"(?<=://)([^:/?@]*):[^@/?]*(?=@)")


class Change(NamedTuple):
    """``config`` is to be in force, ``changed`` are the top-level keys in which it differs from what was.

    ``waiting`` are the paths of keys whose change counts from the next start.
    """

    config: Config
    changed: list[str]
    waiting: list[str]


def with_store_url(config: Config) -> Config:
    """``config`` with the URL itself in the place of ``store.url_file``: all processes then mean the same store.

    Raises:
        ConfigError: the file cannot be read, or holds none.
    """
    if not config.accounts:
        return config
    store = config.store.model_copy(update={"url": read_store_url(config.store), "url_file": None})
    return config.model_copy(update={"store": store})


def change(running: Config, written: Config) -> Change:
    """What becomes of ``running`` when ``written`` is to take its place; both are :func:`with_store_url`."""
    kept = {key: getattr(running, key) for key in FIXED if getattr(running, key) != getattr(written, key)}
    waiting = list(kept)
    if "accounts" in kept:
        # The store belongs to them.
        kept["store"] = running.store
    else:
        of_store = {key: getattr(running.store, key) for key in FIXED_OF_STORE if not _same(running, written, key)}
        waiting += [f"store.{key}" for key in of_store]
        kept["store"] = written.store.model_copy(update=of_store)
    config = written.model_copy(update=kept)
    changed = [key for key in Config.model_fields if getattr(config, key) != getattr(running, key)]
    return Change(config, changed, waiting)


def _same(running: Config, written: Config, key: str) -> bool:
    before, after = getattr(running.store, key), getattr(written.store, key)
    if isinstance(before, str) and isinstance(after, str):
        return _PASSWORD.sub(r"\1", before) == _PASSWORD.sub(r"\1", after)
    return bool(before == after)
