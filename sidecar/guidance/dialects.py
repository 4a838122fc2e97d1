"""The dialects of JSON Schema by the ``$schema`` that names them.

A dialect that is not known, or not even named by a string, is read as the latest: no schema is refused for it, and none
is ever fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema


@dataclass(frozen=True, slots=True)
class Dialect:
    """What tells the dialects apart here.

    ``validator`` knows the meta-schema. ``id_keyword`` names a schema; where ``bare_refs`` holds, nothing that stands
    beside a ``$ref`` has an effect, and an id that is only a fragment is an anchor.
    """

    validator: Any
    id_keyword: str = "$id"
    bare_refs: bool = False


LATEST = Dialect(jsonschema.Draft202012Validator)

_KNOWN = {
    "draft-04/schema": Dialect(jsonschema.Draft4Validator, id_keyword="id", bare_refs=True),
    "draft-06/schema": Dialect(jsonschema.Draft6Validator, bare_refs=True),
    "draft-07/schema": Dialect(jsonschema.Draft7Validator, bare_refs=True),
    "draft/2019-09/schema": Dialect(jsonschema.Draft201909Validator),
}


def dialect_of(schema: Mapping[str, Any]) -> Dialect:
    """The dialect that ``schema`` says it is written in."""
    name = schema.get("$schema")
    if not isinstance(name, str):
        return LATEST
    return _KNOWN.get(name.partition("//json-schema.org/")[2].rstrip("#"), LATEST)
