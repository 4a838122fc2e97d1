"""What all parts of the configuration have in common."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

_SAID_AS_TEXT = frozenset(("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"))


class Section(BaseModel):
    """A part of the configuration: immutable, and without keys that are not its own.

    Numbers, and true and false, are written as such: what stands in quotes is a text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_written_as_such(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        _check(value, cls.model_fields[info.field_name].annotation)
        return value

    def keys_set(self, path: str) -> Iterator[str]:
        """The paths of the keys that stand in the file with a value, their defaults too; ``path`` is this section's."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Section):
                yield from value.keys_set(f"{path}.{name}")
            elif name in self.model_fields_set and value is not None:
                yield f"{path}.{name}"


def _check(value: Any, annotation: Any) -> None:
    """Raise :class:`PydanticKnownError` for a value that pydantic would make another type's."""
    if isinstance(value, list):
        entries = next((get_args(one) for one in _alternatives(annotation) if get_origin(one) is tuple), ())
        for entry in value if entries else ():
            _check(entry, entries[0])
        return
    kinds = set(_alternatives(annotation)) - {NoneType}
    if kinds == {bool}:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise PydanticKnownError("bool_type")
        if isinstance(value, str) and value.strip().lower() in _SAID_AS_TEXT:
            raise PydanticKnownError("bool_type")
    elif kinds and kinds <= {int, float} and (isinstance(value, bool) or _is_number(value)):
        raise PydanticKnownError("int_type" if kinds == {int} else "float_type")


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The types of which a value may be one, without what is said of them beside."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for alternative in get_args(annotation):
            yield from _alternatives(alternative)
    else:
        yield annotation


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True
