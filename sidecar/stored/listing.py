"""``GET …/input_items``: a page of a conversation, as OpenAI's lists have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sidecar.responses.json_text import json_string
from sidecar.responses.page import Page, nothing_after
from sidecar.stored.items import as_array, lines_of


def cut(page: Page, texts: Sequence[bytes]) -> bytes:
    """The page as JSON. ``texts`` are stored lists of items, which make up the conversation from its begin on.

    Raises:
        ApiError: ``invalid_request``, the item ``page.after`` is not in the conversation.
    """
    lines = _lines(page, texts)
    if page.after is not None and not _skip_to(page.after, lines):
        raise nothing_after(page.after)
    found = list(islice(lines, page.limit + 1))
    shown_lines, more = found[: page.limit], len(found) > page.limit
    first, last = (_id_of(shown_lines[0]), _id_of(shown_lines[-1])) if shown_lines else (None, None)
    return (b'{"object":"list","data":%b,"first_id":%b,"last_id":%b,"has_more":%b}') % (
        as_array(shown_lines),
        _json_or_null(first),
        _json_or_null(last),
        b"true" if more else b"false",
    )


def _lines(page: Page, texts: Sequence[bytes]) -> Iterator[bytes]:
    if page.order == "asc":
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
