"""What tools that the client runs by itself are asked for: a command, or a change of a file.

A model is shown a function for each, whose arguments are the action; the client's items hold it as OpenAI has it.
Arguments that are no such action are told as well as they can be, in the place where a client that acts on them does no
harm and its model reads in the output what it has written.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, FailFast, Field, ValidationError, WithJsonSchema, model_validator

from sidecar.responses.json_text import Json
from sidecar.responses.request_model import RequestModel, fault

_STRING: Json = {"type": "string"}


class Action(RequestModel, ABC):
    """An action; ``function`` is the name, description and parameters of the function that stands for its tool."""

    function: ClassVar[Json]

    @classmethod
    def read(cls, arguments: str) -> Self:
        """The action in a function's whole ``arguments``, JSON text."""
        try:
            return cls.model_validate_json(arguments, strict=False)
        except ValidationError:
            return cls.unread(arguments)

    @classmethod
    def arguments_in(cls, members: Mapping[str, Any]) -> str:
        """The arguments that say an action with these ``members``, as JSON text; what is no member of one is left."""
        names = cls.function["parameters"]["properties"]
        return json.dumps({name: members[name] for name in names if members.get(name) is not None}, ensure_ascii=False)

    @classmethod
    @abstractmethod
    def unread(cls, arguments: str) -> Self:
        """The action that stands for arguments which say none."""

    def to_json(self) -> Json:
        """The action as it is told."""
        return self.model_dump(exclude_none=True)

    @abstractmethod
    def begun(self) -> Self:
        """The same before its contents are told."""


def _strings(value: Any) -> Any:
    # Not pydantic's own look at the values, which would gather an error for each of them.
    if isinstance(value, dict) and not all(isinstance(member, str) for member in value.values()):
        raise fault("Invalid type for '{path}': expected an object of strings.")
    return value


class Exec(Action):
    """A command that the client is to run, word by word."""

    function: ClassVar = {
        "name": "local_shell",
        "description": "Runs a command on the user's machine and returns its output.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {
                    "type": "array",
                    "items": _STRING,
                    "minItems": 1,
                    "description": 'The program and its arguments, such as ["ls", "-l"]; no shell reads them.',
                },
                "env": {
                    "type": "object",
                    "additionalProperties": _STRING,
                    "description": "Further environment variables.",
                },
                "timeout_ms": {"type": "integer", "description": "For how many milliseconds it may run."},
                "working_directory": {"type": "string", "description": "Where to run it."},
                "user": {"type": "string", "description": "The user to run it as."},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    }

    type: Literal["exec"] = "exec"
    command: Annotated[list[str], FailFast()]
    env: Annotated[
        dict[str, str],
        BeforeValidator(_strings),
        WithJsonSchema({"type": "object", "additionalProperties": _STRING}),
    ] = Field(default_factory=dict)
    timeout_ms: int | None = None
    working_directory: str | None = None
    user: str | None = None

    @classmethod
    def arguments_in(cls, members: Mapping[str, Any]) -> str:
        """See :meth:`Action.arguments_in`; without an empty ``env``, which answers have and models need not write."""
        return super().arguments_in({**members, "env": members.get("env") or None})

    @classmethod
    def unread(cls, arguments: str) -> Self:
        """A program that nobody has."""
        return cls(command=[arguments])

    def begun(self) -> Self:
        """No word of it yet."""
        return type(self)(command=[])


class FileChange(Action):
    """A change of one file that the client is to make; ``diff`` is ``None`` where the file is to be deleted."""

    function: ClassVar = {
        "name": "apply_patch",
        "description": "Creates, updates or deletes one of the user's files.",
        "parameters": {
            "type": "object",
            "properties": {
                "type": {"enum": ["create_file", "update_file", "delete_file"]},
                "path": {"type": "string", "description": "The file, as seen from the root of the workspace."},
                "diff": {
                    "type": "string",
                    "description": (
                        "The change, as lines that begin with '+' (to be added), '-' (to be removed) or a space (that "
                        "stand around it), after a line '@@', which may name the class or function that they are in. "
                        "All lines of a new file begin with '+'. Empty where a file is deleted."
                    ),
                },
            },
            "required": ["type", "path", "diff"],
            "additionalProperties": False,
        },
    }

    type: Literal["create_file", "update_file", "delete_file"]
    path: str
    diff: str | None = None

    @model_validator(mode="after")
    def _diff_where_there_is_a_change(self) -> Self:
        if self.diff is None and self.type != "delete_file":
            raise fault("Missing required parameter: '{path}'.", member="diff")
        return self

    @classmethod
    def arguments_in(cls, members: Mapping[str, Any]) -> str:
        """See :meth:`Action.arguments_in`; a file is deleted with an empty diff."""
        return super().arguments_in({"diff": "", **members})

    @classmethod
    def unread(cls, arguments: str) -> Self:
        """A change of no file."""
        return cls(type="update_file", path="", diff=arguments)

    def to_json(self) -> Json:
        """The change; one that deletes a file has no diff."""
        return self.model_dump(exclude={"diff"} if self.type == "delete_file" else None)

    def begun(self) -> Self:
        """Nothing of its diff yet."""
        return self.model_copy(update={"diff": ""})
