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
    calls = _unique("function_call", (item.call_id for item in items if isinstance(item, FunctionCall)))
    outputs = _unique("function_call_output", (item.call_id for item in items if isinstance(item, FunctionCallOutput)))
    for call_id in outputs:
        if call_id not in calls:
            raise _invalid(f"No tool call found for function call output with call_id {shown(call_id)}.")
    for call_id in calls:
        if call_id not in outputs:
            raise _invalid(f"No tool output found for function call {shown(call_id)}.")


def _unique(item_type: str, call_ids: Iterable[str]) -> dict[str, None]:
    """The ids in order, as a dictionary for fast look-up."""
    seen = dict[str, None]()
    for call_id in call_ids:
        if call_id in seen:
            raise _invalid(f"Two {item_type} items have the call_id {shown(call_id)}.")
        seen[call_id] = None
    return seen


def _invalid(message: str) -> ApiError:
    return ApiError("invalid_request", message, "input")
