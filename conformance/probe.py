"""One request that puts an endpoint to the test, and what its answer has to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from conformance.rules import Violation
from conformance.shapes import Json

OK = (200,)
ANSWER_LIMIT = 64
"""Tokens of an answer that no probe wants longer."""

FinalCheck = Callable[[Json], Iterator[Violation]]
"""Looks at the final response of an answer."""


class Before(NamedTuple):
    """The turn before: the name of its probe, and what follows its output, ``[]`` where nothing can."""

    probe: str
    reply: Callable[[list[Any]], list[Json]]


class Probe(NamedTuple):
    """One request. Members of ``body`` that are missing get a value that any endpoint takes.

    ``statuses`` are the HTTP statuses that the answer may have; ``check`` looks at the final response further;
    ``optional`` are the parameters that an endpoint may refuse with a 400 as ``unsupported_parameter``; ``before`` is
    the turn before this one, whose input, output and reply become the ``input``; ``paced`` says that the stream is long
    enough to see whether it comes as it is made; ``key`` replaces the API key.
    """

    name: str
    body: Mapping[str, Any] | bytes
    statuses: Collection[int] = OK
    check: FinalCheck | None = None
    optional: tuple[str, ...] = ()
    before: Before | None = None
    paced: bool = False
    content_type: str = "application/json"
    key: str | None = None

    @property
    def streamed(self) -> bool:
        """Whether the answer is asked for as a stream."""
        return isinstance(self.body, Mapping) and self.body.get("stream") is True

    @property
    def expected(self) -> str:
        """The statuses that the answer may have, in words."""
        if isinstance(self.statuses, range):
            return f"{self.statuses.start} to {self.statuses.stop - 1}"
        return " or ".join(map(str, self.statuses))

    def content(self, model: str) -> bytes:
        """The request body for ``model``."""
        if isinstance(self.body, bytes):
            return self.body
        body = {"model": model, "max_output_tokens": ANSWER_LIMIT, **self.body}
        # What is replayed may hold half a character, which only an escape can carry.
        return json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace")

    def after(self, earlier: Probe, output: list[Any]) -> Probe | None:
        """This turn with what ``earlier`` sent and got replayed; ``None`` where nothing can follow ``output``."""
        assert self.before is not None and isinstance(self.body, Mapping) and isinstance(earlier.body, Mapping)
        reply = self.before.reply(output)
        if not reply:
            return None
        asked = earlier.body["input"]
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        return self._replace(body={**self.body, "input": [*items, *output, *reply]})
