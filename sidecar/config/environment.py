"""Settings from environment variables, in place of those in the file: for what differs from one node to the next.

``RESPONSES_SIDECAR__TRITON__ADDRESS`` is ``triton.address``: the prefix, then the key's path in capitals, two
underscores before each step. The value is YAML, as it would stand in the file. Members of lists have no variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

PREFIX = "RESPONSES_SIDECAR__"


def overridden(data: Any, environment: Mapping[str, str]) -> Any:
    """The file's ``data`` with the settings of ``environment``; where it is no mapping, it stays as it is.

    Raises:
        ValueError: a variable's value is not YAML, or its path goes through a value; the message begins with its name.
    """
    if not isinstance(data, dict):
        return data
    for name in sorted(name for name in environment if name.startswith(PREFIX)):
        *path, last = key_path(name)
        data = section = dict(data)
        for step in path:
            below = section.get(step) or {}
            if not isinstance(below, dict):
                raise ValueError(f"{name}: {step} holds no keys that a variable could set")
            section[step] = dict(below)
            section = section[step]
        section[last] = _value(name, environment[name])
    return data


def key_path(name: str) -> list[str]:
    """The steps to the key that the variable ``name`` sets."""
    return name.removeprefix(PREFIX).lower().split("__")


def _value(name: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError(f"{name}: not YAML") from None
