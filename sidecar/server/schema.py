"""Brings the store to this release's schema before the workers use it."""

from __future__ import annotations

import logging
import threading
import time

from sidecar.config.load import ConfigError, read_store_url
from sidecar.config.models import Config
from sidecar.store import SchemaError, StoreUnavailable
from sidecar.store.migrate import migrate

_PAUSE_SECONDS = 2.0

_log = logging.getLogger(__name__)


def prepare_store(config: Config) -> None:
    """Make or upgrade the store. One that does not answer is tried again in a thread, until it does.

    Raises:
        ConfigError: it is of a later release, or its file cannot be made.
    """
    url = read_store_url(config.store)
    try:
        migrate(url)
    except StoreUnavailable as error:
        _log.error("the store does not answer; it is tried again: %s", error)
        threading.Thread(target=_try_again, args=(url,), name="schema", daemon=True).start()
    except (SchemaError, OSError) as error:
        raise ConfigError(f"store: {error}") from error


def _try_again(url: str) -> None:
    while True:
        time.sleep(_PAUSE_SECONDS)
        try:
            return migrate(url)
        except StoreUnavailable:
            continue
        except (SchemaError, OSError) as error:
            return _log.error("the store cannot be used: %s", error)
