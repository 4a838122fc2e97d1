"""The answer of a model whose decoding is guided to a call: one bare JSON object, or a list of them.

{"name": "f", "arguments": {"a": 1}}
[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Steps


class ForcedParser(CallParser):
    """Reads such an answer; what does not follow the guide is text."""

    def read(self) -> Steps[None]:
        """The calls, then whatever follows."""
        yield from self.source.space()
        self.hold()
        yield from self.calls(bare=True)
        yield from self.text()
