"""A turn through OpenAI's Agents SDK whose tools the client runs itself; prints, by way of asking, what came of it.

Arguments: base URL, key, model, the question, and the outputs of a command and of a change of a file.
"""

import asyncio
import json
import sys
from typing import Any

from agents import (
    Agent,
    ApplyPatchTool,
    LocalShellCommandRequest,
    LocalShellTool,
    OpenAIResponsesModel,
    Runner,
    set_tracing_disabled,
)
from agents.apply_diff import apply_diff
from agents.editor import ApplyPatchOperation
from openai import AsyncOpenAI


class Editor:
    """Applies diffs to one file's text."""

    def __init__(self, output: str) -> None:
        self.text = "def greet():\n    pass\n"
        self._output = output

    def update_file(self, operation: ApplyPatchOperation) -> str:
        self.text = apply_diff(self.text, operation.diff or "")
        return self._output

    def create_file(self, operation: ApplyPatchOperation) -> str:
        raise AssertionError(operation)

    delete_file = create_file


async def main(base_url: str, api_key: str, model: str, question: str, shell_output: str, edit_output: str) -> None:
    # Traces would go to OpenAI.
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base_url, api_key=api_key)
    answers: dict[str, Any] = {}
    for way in ("run", "run_streamed"):
        commands: list[list[str]] = []

        def execute(request: LocalShellCommandRequest, commands: list[list[str]] = commands) -> str:
            commands.append(request.data.action.command)
            return shell_output

        editor = Editor(edit_output)
        agent = Agent(
            "Coder",
            tools=[LocalShellTool(execute), ApplyPatchTool(editor)],
            model=OpenAIResponsesModel(model, openai_client=client),
        )
        if way == "run":
            result: Any = await Runner.run(agent, question)
        else:
            result = Runner.run_streamed(agent, question)
            async for _ in result.stream_events():
                pass
        answers[way] = {"commands": commands, "text": editor.text, "answer": result.final_output}
    print(json.dumps(answers))


asyncio.run(main(*sys.argv[1:]))
