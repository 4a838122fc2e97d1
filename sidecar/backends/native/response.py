"""An upstream's response object, as its client is told it."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.backends.native.json_values import count_of
from sidecar.responses.json_text import Json
from sidecar.responses.usage import Usage


@dataclass(frozen=True, slots=True)
class Telling:
    """How a response is told: ``ours`` are the members that the upstream's never replace.

    ``defaults`` is the whole object as a surface opens it, for what the upstream leaves out. ``taken`` are the members
    that are the upstream's to tell; without it, all others.
    """

    defaults: Json
    ours: Json
    taken: frozenset[str] | None = None

    def of(self, response: Json) -> Json:
        """The upstream's ``response`` as it is told."""
        known = self.defaults
        theirs = {name: value for name, value in response.items() if self.taken is None or name in self.taken}
        if isinstance(usage := theirs.get("usage"), dict):
            told = {name: value for name, value in usage.items() if value is not None}
            theirs["usage"] = {**Usage().to_json(), **told}
        return {**known, **theirs, **self.ours}


def usage_of(response: Json) -> Usage | None:
    """The tokens that a response tells of; ``None`` where it tells none."""
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    input_tokens, output_tokens = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
    cached = _detail(usage.get("input_tokens_details"), "cached_tokens")
    reasoning = _detail(usage.get("output_tokens_details"), "reasoning_tokens")
    return Usage(input_tokens, output_tokens, min(cached, input_tokens), min(reasoning, output_tokens))


def searches_in(response: Json) -> int:
    """How many web searches a response shows; other things that the tool does, as to open a page, are none."""
    items = (item for item in response.get("output") or () if item.get("type") == "web_search_call")
    return sum(_is_search(item.get("action")) for item in items)


def _is_search(action: object) -> bool:
    return not isinstance(action, dict) or action.get("type", "search") == "search"


def _detail(details: object, name: str) -> int:
    return count_of(details.get(name)) if isinstance(details, dict) else 0
