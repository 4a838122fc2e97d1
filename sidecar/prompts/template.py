"""A model's chat template: Jinja in a sandbox, with the helpers that model authors count on.

The template is the operator's; the conversation is data. Data reaches it only as variables, so text that looks like
Jinja stays text. Source: the chat template contract of the transformers library, which published templates follow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

Turn = dict[str, Any]
"""One message as chat templates know it: ``role``, ``content``, and for tools ``tool_calls`` or ``tool_call_id``."""


_THINKING_SWITCHES = ("enable_thinking", "thinking")
"""The variables by which templates of different makers learn whether to open a reasoning phase."""


class TemplateFailure(Exception):
    """The template could not be rendered with these turns: it raised an exception of its own, or hit an error."""


class ChatTemplate:
    """A chat template, compiled once; rendering is free of side effects and may run in any thread."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        """Compile ``source``; raises :class:`jinja2.TemplateSyntaxError` when it is not a template."""
        self.source = source
        self._variables = meta.find_undeclared_variables(_ENVIRONMENT.parse(source))
        self._template = _ENVIRONMENT.from_string(source)
        self._constants = {"bos_token": bos_token, "eos_token": eos_token, "add_generation_prompt": True}

    @property
    def has_thinking_switch(self) -> bool:
        """Whether the template reads a variable that turns reasoning on and off."""
        return not self._variables.isdisjoint(_THINKING_SWITCHES)

    def render(
        self,
        turns: Sequence[Turn],
        tools: Sequence[dict[str, Any]] = (),
        *,
        now: datetime,
        enable_thinking: bool | None = None,
        reasoning_effort: str | None = None,
    ) -> str:
        """The prompt, up to where the assistant's next turn begins.

        ``tools`` have the shape of chat completions. ``enable_thinking`` and ``reasoning_effort`` are passed on
        unless ``None``.
        Raises :class:`TemplateFailure` whatever goes wrong inside the template.
        """
        variables = self._constants | {"messages": turns, "tools": list(tools) or None, "strftime_now": now.strftime}
        if enable_thinking is not None:
            variables |= dict.fromkeys(_THINKING_SWITCHES, enable_thinking)
        if reasoning_effort is not None:
            variables["reasoning_effort"] = reasoning_effort
        try:
            return self._template.render(variables)
        except Exception as error:
            # A template is a program: with unforeseen data it may fail in any way.
            raise TemplateFailure(str(error)) from error


class _GenerationTag(Extension):
    """``{% generation %}…{% endgeneration %}`` marks the assistant's tokens for training; it means nothing here."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Leave the body as it is."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as models saw it in training: Jinja's own filter would escape HTML characters and sort the keys."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    return environment


_ENVIRONMENT = _environment()
