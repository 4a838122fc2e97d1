"""A request to the ids its model reads: items, turns, template, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sidecar.images.image import ImageRef
from sidecar.prompts.conversation import LateSystem, images_of, to_tools, to_turns
from sidecar.prompts.detokenizer import Detokenizer
from sidecar.prompts.features import detect_features
from sidecar.prompts.guard import CUT, MarkerGuard
from sidecar.prompts.template import ChatTemplate, TemplateFailure
from sidecar.prompts.tokenizer import Tokenizer
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest


@dataclass(frozen=True)
class Prompt:
    """What the model is given: ``ids``, and the ``text`` they encode.

    ``runtime_text`` is for a runtime that encodes it itself (:meth:`Tokenizer.runtime_text`). ``images`` are in the
    order of their places in the prompt.
    """

    ids: list[int]
    text: str
    runtime_text: str
    images: Sequence[ImageRef] = ()


class PromptRenderer:
    """Renders prompts for one model. Pure and safe in any thread; a long prompt takes milliseconds."""

    def __init__(self, tokenizer: Tokenizer, *, late_system: LateSystem = "user", tools_as_text: bool = False) -> None:
        """Compile and probe the tokenizer's chat template; raises :class:`ValueError` when it has none.

        ``late_system`` is where system messages go that the template does not take where they stand. ``tools_as_text``
        describes tools in the system text even where the template shows them: calls as it asks for could not be read.
        """
        if tokenizer.template_source is None:
            raise ValueError("the tokenizer has no chat template")
        self._tokenizer = tokenizer
        self._late_system = late_system
        self._template = ChatTemplate(
            tokenizer.template_source, bos_token=tokenizer.bos_token, eos_token=tokenizer.eos_token
        )
        self.end_ids = tokenizer.eos_ids
        self.end_tokens = tokenizer.eos_tokens
        self.count = tokenizer.count
        self.model_max_length = tokenizer.model_max_length
        features = detect_features(self._template)
        self.features = replace(features, tools=False) if tools_as_text else features
        self.tools_unread = tools_as_text and features.tools
        """Whether the template shows tools that are described in the system text instead."""
        self._guard = MarkerGuard(tokenizer.markers())

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
        ``context_length_exceeded`` for one that is far too long for the context.
        """
        if demand is not None:
            instructions = "\n\n".join(filter(None, (request.instructions, demand)))
            request = request.model_copy(update={"instructions": instructions})
        turns = self._guard.protect(to_turns(request, self.features, self._late_system))
        tools = self._guard.protect(to_tools(request)) if self.features.tools else []
        thinking = request.reasons and not guided if self.features.thinking_switch else None
        try:
            text = self._template.render(turns, tools, now=now, enable_thinking=thinking)
        except TemplateFailure as failure:
            message = "This model's chat template cannot take this conversation."
            raise ApiError("invalid_request", message, "input") from failure
        if self._tokenizer.surely_exceeds(text, context_length):
            message = f"The prompt is far longer than this model's context, which holds {context_length} tokens."
            raise ApiError("context_length_exceeded", message, "input")
        return Prompt(
            ids=self._tokenizer.encode(text),
            text=text.replace(CUT, ""),
            runtime_text=self._tokenizer.runtime_text(text),
            images=images_of(turns),
        )

    def detokenizer(self) -> Detokenizer:
        """A fresh detokenizer for one answer."""
        return self._tokenizer.detokenizer()
