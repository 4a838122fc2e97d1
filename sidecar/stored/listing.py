"""``GET …/input_items``: a page of a conversation, as OpenAI's lists have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Self
from urllib.parse import parse_qs

from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import json_string
from sidecar.responses.wording import shown
from sidecar.stored.items import as_array, lines_of

_MOST = 100


@dataclass(frozen=True, slots=True)
class Page:
    """Which page is asked for; ``after`` is the id of the item before it."""

    limit: int = 20
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None

    @classmethod
    def of(cls, query: str) -> Self:
        """The page that a URL's ``query`` asks for; what it does not know in it is ignored, as OpenAI does.

        Raises:
            ApiError: ``invalid_request``, a value is not one that the parameter can have. ``unsupported_parameter``,
                the page before an item is asked for.
        """
        given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        if given.get("before"):
            raise ApiError("unsupported_parameter", "before is not supported; use after, and order.", "before")
        limit, order = given.get("limit", "20"), given.get("order", "desc")
        if not (limit.isascii() and limit.isdigit() and len(limit) <= len(str(_MOST)) and 1 <= int(limit) <= _MOST):
            raise ApiError("invalid_request", f"'limit' must be a whole number from 1 to {_MOST}.", "limit")
        if order not in ("asc", "desc"):
            raise ApiError("invalid_request", "'order' must be 'asc' or 'desc'.", "order")
        return cls(int(limit), "asc" if order == "asc" else "desc", given.get("after") or None)

    def cut(self, texts: Sequence[bytes]) -> bytes:
        """The page as JSON. ``texts`` are stored lists of items, which make up the conversation from its begin on.

        Raises:
            ApiError: ``invalid_request``, the item ``after`` is not in the conversation.
        """
        lines = self._lines(texts)
        if self.after is not None and not _skip_to(self.after, lines):
            raise ApiError("invalid_request", f"There is no item {shown(self.after)} in this list.", "after")
        found = list(islice(lines, self.limit + 1))
        shown_lines, more = found[: self.limit], len(found) > self.limit
        first, last = (_id_of(shown_lines[0]), _id_of(shown_lines[-1])) if shown_lines else (None, None)
        return (b'{"object":"list","data":%b,"first_id":%b,"last_id":%b,"has_more":%b}') % (
            as_array(shown_lines),
            _json_or_null(first),
            _json_or_null(last),
            b"true" if more else b"false",
        )

    def _lines(self, texts: Sequence[bytes]) -> Iterator[bytes]:
        if self.order == "asc":
            return (line for text in texts for line in lines_of(text))
        return (line for text in reversed(texts) for line in reversed(lines_of(text)))


def _skip_to(id_: str, lines: Iterable[bytes]) -> bool:
    """Take lines up to the item ``id_``; whether it was there."""
    written = json_string(id_).encode()
    return any(written in line and _id_of(line) == id_ for line in lines)


def _id_of(line: bytes) -> str:
    id_: str = json.loads(line)["id"]
    return id_


def _json_or_null(text: str | None) -> bytes:
    return b"null" if text is None else json_string(text).encode()
