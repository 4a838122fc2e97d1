"""A request to the ids its model reads: items, turns, template, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sidecar.images.image import ImageRef
from sidecar.prompts.budget import is_far_too_long, surely_exceeds
from sidecar.prompts.chat_model import ChatModel
from sidecar.prompts.conversation import LateSystem, images_of, to_tools, to_turns
from sidecar.prompts.detokenizer import Detokenizer
from sidecar.prompts.effort import template_effort
from sidecar.prompts.guard import CUT
from sidecar.prompts.template import TemplateFailure
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ReasoningEffort, ResponsesRequest


@dataclass(frozen=True)
class Prompt:
    """What the model is given: ``ids``, and the ``text`` they encode.

    ``runtime_text`` is for a runtime that encodes it itself (:meth:`Tokenizer.runtime_text`). ``images`` are in the
    order of their places in the prompt. ``applied_effort`` is the reasoning effort that the model was told to make,
    ``None`` where the client asked for none or the template cannot tell it.
    """

    ids: list[int]
    text: str
    runtime_text: str
    images: Sequence[ImageRef] = ()
    applied_effort: ReasoningEffort | None = None


class PromptRenderer:
    """Renders prompts for one model. Pure and safe in any thread; a long prompt takes milliseconds."""

    def __init__(self, model: ChatModel, *, late_system: LateSystem = "user", tools_as_text: bool = False) -> None:
        """Render for ``model``.

        ``late_system`` is where system messages go that the template does not take where they stand. ``tools_as_text``
        describes tools in the system text even where the template shows them: calls as it asks for could not be read.
        """
        # Held as a whole, so that other models of the same files can share it.
        self._model = model
        self._tokenizer = tokenizer = model.tokenizer
        self._late_system = late_system
        self._template = model.template
        self.end_ids = tokenizer.eos_ids
        self.end_tokens = tokenizer.eos_tokens
        self.count = tokenizer.count
        self.model_max_length = tokenizer.model_max_length
        self.features = replace(model.features, tools=False) if tools_as_text else model.features
        self.tools_unread = tools_as_text and model.features.tools
        """Whether the template shows tools that are described in the system text instead."""
        self._guard = model.guard

    def render(
        self,
        request: ResponsesRequest,
        *,
        now: datetime,
        context_length: int,
        guided: bool = False,
        demand: str | None = None,
    ) -> Prompt:
        """The prompt of ``request``.

        ``now`` is for templates that write the date. ``context_length`` is in tokens. A ``guided`` answer begins at
        once, without a reasoning phase. ``demand`` is added to the instructions.

        Raises :class:`ApiError`: ``invalid_request`` for a conversation that the model's template cannot take,
        ``context_length_exceeded`` for one that is longer than the context, unless only somewhat: then the caller knows
        by how much.
        """
        if demand is not None:
            instructions = "\n\n".join(filter(None, (request.instructions, demand)))
            request = request.model_copy(update={"instructions": instructions})
        turns = to_turns(request, self.features, self._late_system)
        tools = to_tools(request) if self.features.tools else []
        # Before the guard and the template read it all.
        if is_far_too_long([*turns, *tools], context_length):
            raise _too_long(context_length)
        turns, tools = self._guard.protect(turns), self._guard.protect(tools)
        effort = template_effort(request.reasoning.effort, self.features, guided=guided)
        try:
            text = self._template.render(
                turns, tools, now=now, enable_thinking=effort.thinking, reasoning_effort=effort.grade
            )
        except TemplateFailure as failure:
            message = "This model's chat template cannot take this conversation."
            raise ApiError("invalid_request", message, "input") from failure
        if surely_exceeds(text, context_length, self._tokenizer.encode):
            raise _too_long(context_length)
        return Prompt(
            ids=self._tokenizer.encode(text),
            text=text.replace(CUT, ""),
            runtime_text=self._tokenizer.runtime_text(text),
            images=images_of(turns),
            applied_effort=effort.applied,
        )

    def detokenizer(self) -> Detokenizer:
        """A fresh detokenizer for one answer."""
        return self._tokenizer.detokenizer()


def _too_long(context_length: int) -> ApiError:
    message = f"The prompt is far longer than this model's context, which holds {context_length} tokens."
    return ApiError("context_length_exceeded", message, "input")
