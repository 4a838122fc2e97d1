"""What all request models share: strict scalars, ``null`` as absence, and errors that carry a code of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from sidecar.responses.wording import shown


class RequestModel(BaseModel):
    """An object of a request. Unknown members are ignored, since clients send back what servers once added.

    Scalars are strict: an integer is not a boolean, not ``1.0`` and not ``"1"``, as on OpenAI's endpoint.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    ignored_members: ClassVar[Mapping[str, dict[str, Any]]] = {}
    """Members that clients are known to send and nothing is made of, with their JSON Schemas, for documents."""

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """A generic model has one name, whatever the unions that a surface puts in."""
        return cls.__name__

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: member for key, member in value.items() if member is not None}
        return value


class ClosedModel(RequestModel):
    """An object of settings, where an unknown member is a setting that would silently have no effect: it is refused."""

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_members(cls, value: Any) -> Any:
        # Not pydantic's own "forbid", which would gather an error for each of a million members.
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for name, member in value.items() if isinstance(value, dict) else ():
            if name not in known and member is not None:
                raise fault("Unknown parameter: '{path}'.", member=shown(name), code="unsupported_parameter")
        return value


def fault(message: str, *, member: str = "", code: str = "invalid_request") -> PydanticCustomError:
    """A validation error for a rule the type system cannot state.

    ``code`` is a key of the error table; ``member`` continues the path of the value under validation (``name``,
    ``[2].name``). ``{path}`` in the message stands for the whole path.
    """
    return PydanticCustomError("request_fault", "{message}", {"message": message, "member": member, "code": code})


STRING_OR_NULL = {"type": ["string", "null"]}
OBJECT_OR_NULL = {"type": ["object", "null"]}
ARRAY_OR_NULL = {"type": ["array", "null"]}
BOOLEAN_OR_NULL = {"type": ["boolean", "null"]}


@dataclass(frozen=True)
class OrString:
    """Annotates a list: a plain string stands for the list that ``read`` makes of the value.

    ``min_length`` bounds the string in the JSON Schema.
    """

    read: Callable[[Any], Any]
    min_length: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The list's schema behind ``read``. It is asked for here, where a generic list knows its members."""
        whole = handler(source)
        string = core_schema.str_schema(min_length=self.min_length)

        def read(value: Any) -> Any:
            if not (value is None or isinstance(value, str | list)):
                raise PydanticCustomError("string_or_list_type", "a string or a list is needed")
            return self.read(value)

        return core_schema.no_info_before_validator_function(
            read, whole, json_schema_input_schema=core_schema.union_schema([string, whole])
        )


def text_as_parts(part_type: str) -> OrString:
    """A plain string where a list of parts is expected means one text part of ``part_type``."""

    def read(value: Any) -> Any:
        return [{"type": part_type, "text": value}] if isinstance(value, str) else value

    return OrString(read)


def type_tag(value: Any) -> str | None:
    """The tag of a value in a union told apart by ``type``; ``None`` when it has none.

    Tags are written in angle brackets, so that a path made by pydantic shows which of its steps are tags.
    """
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"<{kind}>" if isinstance(kind, str) else None
