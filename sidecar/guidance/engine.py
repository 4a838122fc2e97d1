"""The grammar engine that guides decoding, asked whether it can make a grammar of a schema.

Its work grows with what a schema says and not with its size, up to a second, and nothing stops it half-way: it is for a
process that can be ended. Only the engine is imported, so that such a process is small and starts fast.
"""

from __future__ import annotations

from collections.abc import Sequence

from llguidance import LLMatcher

from sidecar.memory import remembered

_REMEMBERED = 4_000_000
_REASON_LENGTH = 100


def prepare() -> None:
    """Make a process ready for :func:`guide_faults`."""
    guide_fault("{}")


def guide_faults(documents: Sequence[str]) -> list[str | None]:
    """:func:`guide_fault` of each of ``documents``."""
    return [guide_fault(document) for document in documents]


@remembered(_REMEMBERED)
def guide_fault(document: str) -> str | None:
    """Why no grammar can be made of the schema ``document``, in words that can be shown; ``None`` if one can."""
    fault = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(document))
    if not fault:
        return None
    # A pattern that cannot be read is quoted and pointed at between the first line and the reason, the last one.
    first, *others = fault.splitlines()
    reason = f"{first} {others[-1].removeprefix('error: ')}" if others and first.endswith(":") else first
    return "".join(filter(str.isprintable, reason))[:_REASON_LENGTH]
