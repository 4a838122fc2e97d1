"""What decides in tests: a well-known validator and its meta-schemas, by dialect."""

from typing import Any

import jsonschema
from referencing import Registry

from sidecar.guidance.dialects import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, LATEST, Dialect, dialect_of

VALIDATORS: dict[Dialect, Any] = {
    DRAFT_04: jsonschema.Draft4Validator,
    DRAFT_06: jsonschema.Draft6Validator,
    DRAFT_07: jsonschema.Draft7Validator,
    DRAFT_2019_09: jsonschema.Draft201909Validator,
    LATEST: jsonschema.Draft202012Validator,
}
NAMES = {
    DRAFT_04: "http://json-schema.org/draft-04/schema#",
    DRAFT_06: "http://json-schema.org/draft-06/schema#",
    DRAFT_07: "http://json-schema.org/draft-07/schema#",
    DRAFT_2019_09: "https://json-schema.org/draft/2019-09/schema",
    LATEST: "https://json-schema.org/draft/2020-12/schema",
}
_NOTHING_ELSE: Registry[Any] = Registry()


def validator(schema: dict[str, Any]) -> Any:
    """A validator of values by ``schema``, which never fetches."""
    return VALIDATORS[dialect_of(schema)](schema, registry=_NOTHING_ELSE)


def meta_validator(dialect: Dialect) -> Any:
    return VALIDATORS[dialect](VALIDATORS[dialect].META_SCHEMA)
