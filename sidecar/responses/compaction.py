"""Compaction: a conversation gives way to a summary of it, in one item whose text is sealed.

Source: OpenAI's ``POST /v1/responses/compact``, and its items ``compaction`` and ``compaction_trigger``. The trigger,
as the last item of an input, asks for the same in place of an answer. In a conversation that goes on, what stood before
a compaction that a trigger asked for is there no more, but for what the user said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.responses.errors import ApiError
from sidecar.responses.items import CompactionItem, CompactionTrigger, InputMessage
from sidecar.responses.parts import InputText
from sidecar.responses.sealing import TeamSeal

ASK = """\
This conversation is about to be replaced by a summary of it, which you write now. Whoever goes on with it will know \
nothing but what the user wrote and this summary. Tell, as briefly as nothing gets lost:
- what the user wants, with all conditions and preferences that still hold;
- what has been done and found out, with the names, paths, numbers, commands and code that are still needed;
- what has been decided, and why;
- what is unfinished, and what was to be done next.
Write the summary and nothing else. Do not answer the conversation, and call no tools."""
"""What the model is told at the end of a conversation that it is to summarise."""

TOLD = "The conversation up to here was replaced by this summary of it:\n\n"
"""What stands before a summary in the conversation that goes on."""


@dataclass(frozen=True, slots=True)
class Uncompacted:
    """Items of a conversation with all that is to be read in them; ``places`` are those that they had before."""

    items: list[Any]
    places: list[int]
    asks: bool
    """Whether a compaction is asked for."""


def uncompacted(items: Sequence[Any], seal: TeamSeal | None, told: Callable[[str], str] = str) -> Uncompacted | None:
    """The conversation that ``items`` stand for; ``None`` where there is nothing about compaction in them.

    ``told`` makes the path of an item that of which its client knows.

    Raises:
        ApiError: ``invalid_request``: a summary that does not open, or a trigger in the midst of the conversation.
            ``unsupported_parameter``: there is no ``seal``.
    """
    first = next((at for at, item in enumerate(items) if isinstance(item, CompactionItem | CompactionTrigger)), None)
    if first is None:
        return None
    if seal is None:
        raise _refusal(
            told(f"input[{first}]"), "is about compaction, which is not supported here", code="unsupported_parameter"
        )
    asks = isinstance(items[-1], CompactionTrigger)
    passed = [at for at, item in enumerate(items[:-1]) if isinstance(item, CompactionTrigger)]
    for at in passed:
        if not isinstance(items[at + 1], CompactionItem):
            raise _refusal(told(f"input[{at}]"), "asks for a compaction and is not the last item")
    begin = passed[-1] if passed else -1
    places = [at for at, item in enumerate(items) if at > begin or _is_users(item)]
    read = [_read(items[at], seal, told(f"input[{at}].encrypted_content")) for at in places]
    return Uncompacted([*read[:-1], _said(ASK)] if asks else read, places, asks)


def _read(item: Any, seal: TeamSeal, path: str) -> Any:
    if not isinstance(item, CompactionItem):
        return item
    summary = seal.unseal(item.encrypted_content)
    if summary is None:
        raise _refusal(path, "was not made here for this team, or has been changed")
    return _said(TOLD + summary)


def _is_users(item: Any) -> bool:
    return isinstance(item, InputMessage) and item.role == "user"


def _said(text: str) -> InputMessage:
    return InputMessage(role="user", content=[InputText(type="input_text", text=text)])


def _refusal(path: str, words: str, code: str = "invalid_request") -> ApiError:
    return ApiError(code, f"'{path}' {words}.", path)
