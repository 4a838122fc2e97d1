"""The dialects of JSON Schema by the ``$schema`` that names them.

A dialect that is not known, or not even named by a string, is read as the latest: no schema is refused for it, and none
is ever fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Dialect:
    """What tells the dialects apart here.

    ``id_keyword`` names a schema; where ``bare_refs`` holds, nothing that stands beside a ``$ref`` has an effect, and
    an id that is only a fragment is an anchor.
    """

    name: str
    id_keyword: str = "$id"
    bare_refs: bool = False


DRAFT_04 = Dialect("draft-04/schema", id_keyword="id", bare_refs=True)
DRAFT_06 = Dialect("draft-06/schema", bare_refs=True)
DRAFT_07 = Dialect("draft-07/schema", bare_refs=True)
DRAFT_2019_09 = Dialect("draft/2019-09/schema")
LATEST = Dialect("draft/2020-12/schema")

_KNOWN = {dialect.name: dialect for dialect in (DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09)}


def dialect_of(schema: Mapping[str, Any]) -> Dialect:
    """The dialect that ``schema`` says it is written in."""
    name = schema.get("$schema")
    if not isinstance(name, str):
        return LATEST
    return _KNOWN.get(name.partition("//json-schema.org/")[2].rstrip("#"), LATEST)
