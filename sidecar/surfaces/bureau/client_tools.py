"""The tools that a client runs by itself, ``local_shell`` and ``apply_patch``, as models of Triton can have them.

Each is a function of a fixed schema to the model, which its arguments are kept to where that can be done.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import model_validator
from pydantic.json_schema import SkipJsonSchema

from sidecar.responses import items
from sidecar.responses.actions import Action, Exec, FileChange
from sidecar.responses.json_text import Json
from sidecar.responses.tools import NamedFunction
from sidecar.surfaces.unions import FunctionTool, ToolOutputPart


class _ClientTool(FunctionTool):
    """A tool that is nothing but its type. ``action`` is what it is asked for."""

    action: ClassVar[type[Action]]
    named: ClassVar = False

    name: SkipJsonSchema[str]
    description: SkipJsonSchema[str]
    parameters: SkipJsonSchema[Any]
    strict: SkipJsonSchema[bool]
    output_schema: SkipJsonSchema[None] = None
    defer_loading: SkipJsonSchema[None] = None

    @model_validator(mode="before")
    @classmethod
    def _as_function(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        own = {"type": value.get("type"), "allowed_callers": value.get("allowed_callers")}
        return {**own, **cls.action.function, "strict": True}

    def echo(self) -> Json:
        """Its type."""
        return {"type": self.type}


class LocalShellTool(_ClientTool):
    """Lets the model run commands on the user's machine."""

    called_as: ClassVar = "local_shell_call"
    action: ClassVar = Exec

    type: Literal["local_shell"]  # type: ignore[assignment]


class ApplyPatchTool(_ClientTool):
    """Lets the model create, update and delete the user's files."""

    called_as: ClassVar = "apply_patch_call"
    action: ClassVar = FileChange

    type: Literal["apply_patch"]  # type: ignore[assignment]


class NamedApplyPatch(NamedFunction):
    """The tool that the model has to call."""

    type: Literal["apply_patch"]  # type: ignore[assignment]
    name: SkipJsonSchema[str] = FileChange.function["name"]

    def echo(self) -> Json:
        """Its type."""
        return {"type": self.type}


class _ActionCall(items.FunctionCall):
    """An earlier call of such a tool: ``action_type`` stands in the item's ``action_member``."""

    action_type: ClassVar[type[Action]]
    action_member: ClassVar[str]

    name: SkipJsonSchema[str]
    arguments: SkipJsonSchema[str]

    @model_validator(mode="before")
    @classmethod
    def _as_function_call(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        action = value.get(cls.action_member)
        arguments = cls.action_type.arguments_in(action) if isinstance(action, dict) else ""
        return {**value, "name": cls.action_type.function["name"], "arguments": arguments}


class LocalShellCall(_ActionCall):
    """A command that the assistant had run earlier."""

    action_type: ClassVar = Exec
    action_member: ClassVar = "action"

    type: Literal["local_shell_call"]  # type: ignore[assignment]
    action: Exec


class ApplyPatchCall(_ActionCall):
    """A change of a file that the assistant had made earlier."""

    action_type: ClassVar = FileChange
    action_member: ClassVar = "operation"

    type: Literal["apply_patch_call"]  # type: ignore[assignment]
    operation: FileChange


class LocalShellCallOutput(items.FunctionCallOutput[ToolOutputPart]):
    """What a command printed. Some clients name its call as ``id``."""

    type: Literal["local_shell_call_output"]  # type: ignore[assignment]

    @model_validator(mode="before")
    @classmethod
    def _named_by_its_id(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("call_id") is None and value.get("id") is not None:
            return {**value, "call_id": value["id"]}
        return value


class ApplyPatchCallOutput(items.FunctionCallOutput[ToolOutputPart]):
    """What came of a change of a file. The model reads the status where the output does not say it."""

    type: Literal["apply_patch_call_output"]  # type: ignore[assignment]
    status: Literal["completed", "failed"]

    @model_validator(mode="before")
    @classmethod
    def _told_in_words(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        output, status = value.get("output") or None, value.get("status")
        if output is None and isinstance(status, str):
            return {**value, "output": status}
        if status == "failed" and isinstance(output, str):
            return {**value, "output": f"{status}\n{output}"}
        return value
