"""A configuration as it is in force, as YAML whose comments say where each value comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from sidecar.config.environment import PREFIX, key_path
from sidecar.config.load import load, read
from sidecar.config.section import Section


def configuration_view(path: Path) -> str:
    """The configuration in the file ``path``, with its defaults and the environment's settings.

    Raises:
        ConfigError: it cannot be used.
    """
    config = load(path)
    set_outside = [key_path(name) for name in os.environ if name.startswith(PREFIX)]
    return "\n".join(_lines(config, read(path), set_outside, ""))


def _lines(section: Section, written: Any, set_outside: list[list[str]], indent: str) -> Iterator[str]:
    """The lines of a section, of which ``written`` stands in the file and the environment has set ``set_outside``."""
    written = written if isinstance(written, dict) else {}
    for field, described in type(section).model_fields.items():
        value, name = getattr(section, field), described.alias or field
        deeper = [path[1:] for path in set_outside if path[:1] == [name]]
        if isinstance(value, Section):
            yield f"{indent}{name}:"
            yield from _lines(value, written.get(name), deeper, f"{indent}  ")
        elif isinstance(value, tuple) and value and all(isinstance(member, Section) for member in value):
            yield f"{indent}{name}:"
            members = written.get(name)
            for index, member in enumerate(value):
                first, *others = _lines(member, members[index] if isinstance(members, list) else None, deeper, "")
                yield f"{indent}  - {first}"
                yield from (f"{indent}    {line}" for line in others)
        else:
            source = "environment" if deeper else "file" if name in written else "default"
            yield f"{indent}{name}: {_shown(section, field)}  # {source}"


def _shown(section: Section, field: str) -> str:
    value = section.model_dump(mode="json", include={field})[field]
    if field == "url" and isinstance(value, str) and "@" in value:
        value = make_url(value).render_as_string(hide_password=True)
    return json.dumps(value, ensure_ascii=False)
