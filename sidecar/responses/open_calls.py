"""Calls of tools that still grow, each as the client's own kind of tool has it, and the events of each kind.

A model calls functions only. A tool of another kind is shown to it as a function, and what it writes as arguments is
turned back. Source: OpenAI's streaming reference, the items and events of its SDKs:

* function call: ``output_item.added``, ``function_call_arguments.delta``…, ``function_call_arguments.done``,
  ``output_item.done``
* custom tool call: the same with ``custom_tool_call_input``
* local shell call, apply patch call: ``output_item.added``, ``output_item.done``. There are no events for their growth,
  and half of a command or of a patch is of no use to anybody, so both come when the call is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from sidecar.responses.actions import Action, Exec, FileChange
from sidecar.responses.custom_input import CustomInput, arguments_of
from sidecar.responses.json_text import Json, json_string
from sidecar.responses.open_items import ItemStatus, OpenItem, UnnumberedEvent

CallType = Literal["function_call", "custom_tool_call", "local_shell_call", "apply_patch_call"]
"""The type of the item that the call of a tool is."""


class OpenCall(OpenItem):
    """A call of one of the request's functions; its text is the arguments as JSON."""

    type: ClassVar[CallType] = "function_call"
    delta_type = "response.function_call_arguments.delta"
    told_as_written: ClassVar[bool] = True
    """Whether the arguments are the item's text as they are."""

    def __init__(self, item_id: str, output_index: int, call_id: str, name: str) -> None:
        super().__init__(item_id, output_index)
        self.name = name
        self._call_id = call_id

    def read(self, arguments: str) -> str:
        """What more ``arguments`` add to the item's text."""
        return arguments

    def rest(self) -> str:
        """What the end of the arguments adds to the item's text."""
        return ""

    def arguments(self, text: str) -> str:
        """The arguments of a whole call whose text is ``text``."""
        return text

    def snapshot(self, status: ItemStatus, text: str) -> Json:
        """The call."""
        of_all = {"type": self.type, "id": self.id, "status": status, "call_id": self._call_id}
        return {**of_all, **self._own_members(status, text)}

    def opening(self) -> list[UnnumberedEvent]:
        """Nothing: a call has no parts."""
        return []

    def closing(self, text: str) -> list[UnnumberedEvent]:
        """The whole arguments."""
        return [("response.function_call_arguments.done", {**self.place, "arguments": text, "name": self.name})]

    def _own_members(self, status: ItemStatus, text: str) -> Json:
        return {"name": self.name, "arguments": text}


class OpenCustomCall(OpenCall):
    """A call of one of the request's custom tools; its text is the input."""

    type = "custom_tool_call"
    delta_type = "response.custom_tool_call_input.delta"
    told_as_written = False

    def __init__(self, item_id: str, output_index: int, call_id: str, name: str) -> None:
        super().__init__(item_id, output_index, call_id, name)
        self._input = CustomInput()

    def read(self, arguments: str) -> str:
        """What they tell of the input."""
        return self._input.feed(arguments)

    def rest(self) -> str:
        """The input, where the arguments had another form."""
        return self._input.end()

    def arguments(self, text: str) -> str:
        """The arguments that say the input."""
        return arguments_of(text)

    def closing(self, text: str) -> list[UnnumberedEvent]:
        """The whole input."""
        return [("response.custom_tool_call_input.done", {**self.place, "input": text})]

    def _own_members(self, status: ItemStatus, text: str) -> Json:
        return {"name": self.name, "input": text}


class _OpenAction(OpenCall):
    """A call whose arguments are an action, which ``member`` holds; its text is the arguments as JSON."""

    told_as_written = False
    told_whole = True
    action: ClassVar[type[Action]]
    member: ClassVar[str]

    def read(self, arguments: str) -> str:
        """Nothing: they are gathered."""
        self.encoded += json_string(arguments).encode()[1:-1]
        return ""

    def closing(self, text: str) -> list[UnnumberedEvent]:
        """Nothing."""
        return []

    def _own_members(self, status: ItemStatus, text: str) -> Json:
        action = self.action.read(text)
        return {self.member: (action.begun() if status == "in_progress" else action).to_json()}


class OpenLocalShellCall(_OpenAction):
    """A command that the client is to run."""

    type = "local_shell_call"
    action = Exec
    member = "action"


class OpenApplyPatchCall(_OpenAction):
    """A change of a file that the client is to make."""

    type = "apply_patch_call"
    action = FileChange
    member = "operation"


CALLS: Mapping[CallType, type[OpenCall]] = {
    call.type: call for call in (OpenCall, OpenCustomCall, OpenLocalShellCall, OpenApplyPatchCall)
}
"""The calls by their type: what is new is a line here, and a tool that names it as what it is called as."""
