"""The parameters of ``POST …/responses/compact``: a response whose input ends with a trigger says the same.

Source: OpenAI's endpoint and the clients that call it.
"""

from __future__ import annotations

from sidecar.responses.errors import ApiError
from sidecar.responses.items import input_list
from sidecar.responses.json_text import Json
from sidecar.responses.wording import shown

TAKEN = (
    *("model", "input", "instructions", "previous_response_id", "ib", "user", "safety_identifier"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier"),
)
"""The parameters of a compaction."""
WITHOUT_EFFECT = (
    *("client_metadata", "include", "metadata", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools"),
)
"""Those that clients are known to send along, of which a summary has no use."""
_OFF = ("background", "store", "stream")


def with_trigger(values: Json, unsupported: str) -> Json:
    """The parameters of a response that is the compaction which ``values`` ask for.

    Raises:
        ApiError: ``unsupported_parameter``, in the surface's words.
    """
    for name, value in values.items():
        if value is not None and name not in (*TAKEN, *WITHOUT_EFFECT) and not (name in _OFF and value is False):
            raise ApiError("unsupported_parameter", unsupported.format(name=shown(name)), shown(name))
    taken = {name: values[name] for name in TAKEN if values.get(name) is not None}
    given = input_list(taken.get("input", []))
    if not given and "previous_response_id" not in taken:
        raise ApiError("invalid_request", "'input' or 'previous_response_id' is needed.", "input")
    return {**taken, "input": [*given, {"type": "compaction_trigger"}] if isinstance(given, list) else given}
