"""Calls and their outputs in a conversation that is sent whole: each has exactly one of the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sidecar.responses.errors import ApiError
from sidecar.responses.items import FunctionCall, FunctionCallOutput, Item
from sidecar.responses.wording import shown


def check_pairing(items: Sequence[Item]) -> None:
    """Pair calls and outputs by ``call_id`` alone, wherever they stand.

    Raises :class:`ApiError` ``invalid_request`` for ``input`` that names the call_id which stands alone or twice.
    """
    calls = _unique(item for item in items if isinstance(item, FunctionCall))
    outputs = _unique(item for item in items if isinstance(item, FunctionCallOutput))
    for call_id, type_ in outputs.items():
        if call_id not in calls:
            raise _invalid(f"No tool call found for {_in_words(type_)} with call_id {shown(call_id)}.")
    for call_id, type_ in calls.items():
        if call_id not in outputs:
            raise _invalid(f"No tool output found for {_in_words(type_)} {shown(call_id)}.")


def _unique(items: Iterable[FunctionCall | FunctionCallOutput]) -> dict[str, str]:
    """The types of ``items`` in order, by their call_ids."""
    seen = dict[str, str]()
    for item in items:
        if item.call_id in seen:
            raise _invalid(f"Two {item.type} items have the call_id {shown(item.call_id)}.")
        seen[item.call_id] = item.type
    return seen


def _in_words(item_type: str) -> str:
    return item_type.replace("_", " ")


def _invalid(message: str) -> ApiError:
    return ApiError("invalid_request", message, "input")
