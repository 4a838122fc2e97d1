"""What ``./dev`` prints: the steps on the way, and how to use the stack that runs."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status

console = Console(highlight=False)


class Steps:
    """Shows the step at work, and each finished step with the time it took.

    Call it with the name of the next step. On a terminal the step at work has a spinner.
    """

    def __init__(self) -> None:
        self._status = Status("", console=console)
        self._step: str | None = None
        self._since = 0.0

    def __enter__(self) -> Self:
        if console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._status.stop()
        if error is None:
            self._finish()

    def __call__(self, step: str) -> None:
        """The step before is done; ``step`` begins."""
        self._finish()
        self._step, self._since = step, time.monotonic()
        self._status.update(f"{step} …")

    def _finish(self) -> None:
        if self._step is not None:
            console.print(f"[green]✓[/] {self._step} [dim]({time.monotonic() - self._since:.1f} s)[/]")
        self._step = None


def how_to_use(url: str, api_key: str, models: list[str], bureau_url: str, project_key: str, status_url: str) -> str:
    """The URL, the key, the models, a ``curl`` line and a Python snippet that work as they stand."""
    return f"""
  URL     {url}
  Key     {api_key}
  Models  {", ".join(models)}
  Status  {status_url}

  The bureau surface (docs/bureau.md): {bureau_url}
  with the key {project_key}

curl -N {url}/responses -H 'Authorization: Bearer {api_key}' -H 'Content-Type: application/json' \\
  -d '{{"model": "{models[0]}", "input": "What is a sidecar?", "max_output_tokens": 100, "stream": true}}'

.venv/bin/python - <<'END'
from openai import OpenAI

client = OpenAI(base_url="{url}", api_key="{api_key}")
answer = client.responses.create(model="{models[0]}", input="What is a sidecar?", max_output_tokens=100)
print(answer.output_text)
END

{models[0]} is tiny, so that it runs on any machine: it shows how the API behaves, and writes nonsense. For a real model
give the sidecar your Triton's address, the model's name there and its tokenizer: docs/configuration.md says how.
"""


def dead_models(models: list[str], run_dir: Path) -> str:
    """What to do about models whose process has ended."""
    return (
        f"The process of {' and '.join(models)} has ended, as after a crash or for want of memory, and Triton does not "
        f"start it again: requests are answered with 503. Start the stack anew; {run_dir / 'triton.log'} may say why."
    )
