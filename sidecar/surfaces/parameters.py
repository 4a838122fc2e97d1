"""The table of a surface's parameters: the one place that says how each of them is treated.

The request model (:mod:`sidecar.responses.request`) knows the types; a row says what the surface makes of a value.
Validation, refusals, the OpenAPI document and the page of parameters are all made from the rows.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, create_model

from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.responses.request import ResponsesRequest


class Treatment(ABC):
    """What a surface makes of a parameter that a client sends; ``null`` is always the same as leaving it out."""

    words: str = ""
    """The sentence of a refusal; empty for the surface's general one."""

    ignored: bool = False
    """Whether values that pass have no effect."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The treatment in a few words, in Markdown."""

    def refused(self, value: Any) -> Iterator[tuple[str, str]]:
        """What of a well-formed ``value`` is refused: a continuation of the path, and the entry of a list there."""
        yield from ()

    def schema(self, own: Json) -> Json:
        """The JSON Schema of the values that pass, from the type's ``own``."""
        return own


@dataclass(frozen=True)
class Accepted(Treatment):
    """It has the effect that OpenAI describes."""

    label: ClassVar[str] = "accepted"


@dataclass(frozen=True)
class Ignored(Treatment):
    """It is accepted without effect, whatever its value."""

    label: ClassVar[str] = "accepted without effect"
    ignored: bool = True


@dataclass(frozen=True)
class Refused(Treatment):
    """Any value is refused."""

    words: str = ""

    label: ClassVar[str] = "refused"

    def refused(self, value: Any) -> Iterator[tuple[str, str]]:
        """Everything."""
        yield "", ""

    def schema(self, own: Json) -> Json:
        """Null only."""
        return {"type": "null"}


@dataclass(frozen=True)
class Only(Treatment):
    """Only ``values`` pass. Where ``ignored``, they are harmless rather than understood."""

    values: tuple[Any, ...]
    words: str = ""
    ignored: bool = False

    @property
    def label(self) -> str:
        """The values."""
        passing = " or ".join(f"`{json_value(value)}`" for value in self.values)
        return f"accepted without effect if {passing}" if self.ignored else f"only {passing}"

    def refused(self, value: Any) -> Iterator[tuple[str, str]]:
        """A value that is not among them."""
        if not any(_same(value, passing) for passing in self.values):
            yield "", ""

    def schema(self, own: Json) -> Json:
        """The values."""
        return {"enum": [*self.values, None]}


@dataclass(frozen=True)
class EachOf(Treatment):
    """A list of which each entry has to be among ``values``."""

    values: tuple[str, ...]

    @property
    def label(self) -> str:
        """The values."""
        return f"only {', '.join(f'`{value}`' for value in self.values)}"

    def refused(self, value: Any) -> Iterator[tuple[str, str]]:
        """Entries that are not among them."""
        for index, entry in enumerate(value):
            if entry not in self.values:
                yield f"[{index}]", entry

    def schema(self, own: Json) -> Json:
        """An array of the values."""
        return {"type": ["array", "null"], "items": {"enum": list(self.values)}}


OWN_DEFAULT: Any = object()
"""The default of a parameter whose row names none: the request model's."""


@dataclass(frozen=True)
class Parameter:
    """One row. ``name`` of a member of a settings object is its path, ``text.verbosity``.

    ``default`` is what a request that leaves it out is taken to say; it can be told of top-level parameters only.
    """

    name: str
    treatment: Treatment
    description: str = ""
    default: Any = OWN_DEFAULT

    @property
    def summary(self) -> str:
        """The description, and whether the parameter has an effect at all."""
        return " ".join(text for text in ("Accepted and ignored." * self.treatment.ignored, self.description) if text)

    @property
    def top_level(self) -> bool:
        """Whether it is a parameter of the request itself."""
        return "." not in self.name

    def fault(self, value: Any, general_words: str) -> ApiError | None:
        """The first fault of a value that is well-formed, told in ``general_words`` where the row has none."""
        for place, entry in self.treatment.refused(value):
            path = self.name + place
            words = self.treatment.words or general_words.format(name=f"{entry} in {path}" if entry else path)
            return ApiError("unsupported_parameter", words, path)
        return None


def request_type(
    base: type[ResponsesRequest[Any, Any, Any]], parameters: Iterable[Parameter]
) -> type[ResponsesRequest[Any, Any, Any]]:
    """The model that reads a surface's requests: ``base`` with the defaults of the table."""
    fields: dict[str, Any] = {}
    for row in parameters:
        if row.default is not OWN_DEFAULT:
            field = copy(base.model_fields[row.name])
            field.default, field.default_factory = row.default, None
            fields[row.name] = (field.annotation, field)
    return create_model(base.__name__, __base__=base, __doc__=base.__doc__, **fields) if fields else base


def find_member(request: BaseModel, name: str) -> Any:
    """The value at the path ``name`` of a request that was read; ``None`` where the client sent nothing."""
    value: Any = request
    for step in name.split("."):
        if value is None or step not in value.model_fields_set:
            return None
        value = getattr(value, step)
    return value


def find_default(request_model: type[BaseModel], name: str) -> Any:
    """What a request that leaves out the parameter at the path ``name`` is taken to say; ``None`` for nothing."""
    first, *steps = name.split(".")
    field = request_model.model_fields.get(first)
    value = None if field is None or field.is_required() else field.get_default(call_default_factory=True)
    for step in steps:
        value = None if value is None else getattr(value, step)
    return value


def json_value(value: Any) -> str:
    """``value`` as JSON, for documents."""
    return json.dumps(value)


def _same(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal; Python takes ``false`` for 0."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)
