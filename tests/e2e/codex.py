"""Codex CLI without a terminal, pointed at a stack by a configuration file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stack.local import LocalStack
from stack.setup import NODE, NODE_TESTS
from tests.e2e.drivers import Access, run

PROGRAM = NODE_TESTS / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"

# Codex's own sandbox needs rights that many containers do not give.
PROVIDER = """\
model = "{model}"
model_provider = "node"
sandbox_mode = "danger-full-access"

[model_providers.node]
name = "{provider}"
base_url = "{url}"
env_key = "NODE_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
# Without these Codex offers the model two tools that are no functions: a namespace of agents, and web search.
ONLY_FUNCTION_TOOLS = """
web_search = "disabled"
agents.enabled = false
"""


class Codex:
    """One user's Codex: its configuration and sessions are in ``home``, what it works on in ``work`` beside them."""

    def __init__(
        self,
        at: LocalStack | Access,
        model: str,
        home: Path,
        settings: str = ONLY_FUNCTION_TOOLS,
        *,
        provider: str = "node",
    ) -> None:
        """``provider`` is what it calls the endpoint; it lets one that is called ``OpenAI`` compact conversations."""
        self._environment = {"CODEX_HOME": str(home), "NODE_API_KEY": at.api_key}
        self.work = home / "work"
        self.work.mkdir()
        # Keys of the top level come before the first table.
        (home / "config.toml").write_text(settings + PROVIDER.format(model=model, url=at.url, provider=provider))

    def ask(self, prompt: str) -> str:
        """The answer to the first prompt of a session."""
        return self._answer(prompt)

    def ask_on(self, prompt: str) -> str:
        """The answer to a further prompt of the last session."""
        return self._answer("resume", "--last", prompt)

    def _answer(self, *arguments: str) -> str:
        command: list[str | Path] = [NODE, PROGRAM, "exec", "--skip-git-repo-check", "--json", *arguments]
        output = run(command, self.work, self._environment)
        events: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
        items = [event["item"] for event in events if event["type"] == "item.completed"]
        (answer,) = [item["text"] for item in items if item["type"] == "agent_message"]
        return str(answer)
