"""The request as a native upstream gets it: what its client sent, but for what is ours alone.

It is stateless there: ``store`` is false, and the whole conversation is in it. Source: OpenAI's Responses API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sidecar.responses.json_text import Json, json_bytes, json_string

ENCRYPTED_REASONING = "reasoning.encrypted_content"
IMAGE_TOKENS = 1_500
"""What an image is taken for where nobody has counted its tokens."""

_OURS = frozenset({"ib", "user", "metadata", "previous_response_id", "model", "store"})
_OF_COMPACTIONS = ("instructions", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier")
# The id of an input item that came without one (sidecar.responses.ids).
_MADE_FOR_A_LIST = re.compile(r"[a-z]+_[0-9a-hjkmnp-tv-z]{26}_i\d+")
_NOT_ASCII = bytes(range(0x80, 0x100))
_NO_FIRST_BYTE = bytes(range(0xC0))


def request_body(values: Mapping[str, Any], conversation: Iterable[Json] | None, *, most_tokens: int | None) -> bytes:
    """All of the request's body but its model; see :func:`with_model`.

    ``values`` are the parameters as they were sent. ``conversation`` are the items in place of its ``input``; without
    it that goes as it is. ``most_tokens`` replaces a ``max_output_tokens`` that was left out.
    """
    sent = {name: value for name, value in values.items() if value is not None and name not in _OURS}
    if conversation is not None:
        sent["input"] = list(map(_as_sent, conversation))
    include = sent.get("include", [])
    sent["include"] = include if ENCRYPTED_REASONING in include else [*include, ENCRYPTED_REASONING]
    if most_tokens is not None:
        sent.setdefault("max_output_tokens", most_tokens)
    return json_bytes({"store": False, **sent})


def compaction_body(values: Mapping[str, Any], conversation: Iterable[Json]) -> bytes:
    """The same for a request to compact the conversation; what is kept where is not asked there."""
    sent = {name: values[name] for name in _OF_COMPACTIONS if values.get(name) is not None}
    return json_bytes({**sent, "input": list(map(_as_sent, conversation))})


def with_model(model: str, body: bytes) -> bytes:
    """The whole body, for the ``model`` that the upstream knows by this name."""
    return b'{"model":%b,%b' % (json_string(model).encode(), body[1:])


def request_headers(forwarded: Mapping[str, str], authorization: str, *, stream: bool) -> dict[str, str]:
    """The headers beside the content's: ``forwarded`` are those of the client's that may go on."""
    headers = {"accept": "text/event-stream" if stream else "application/json", "accept-encoding": "identity"}
    if authorization:
        headers["authorization"] = authorization
    return {**headers, **forwarded}


def estimated_tokens(items: Iterable[Json], body: bytes) -> int:
    """How many tokens the prompt of ``body``, whose conversation is ``items``, probably has.

    One for every four bytes, or for a character beyond ASCII, and :data:`IMAGE_TOKENS` for an image, whose own bytes
    do not count.
    """
    images = [_url(part) for item in items for _, part in _images(item)]
    pictures = sum(len(url) for url in images if url.startswith("data:"))
    ascii_bytes = len(body.translate(None, _NOT_ASCII))
    others = len(body.translate(None, _NO_FIRST_BYTE))
    return (ascii_bytes - pictures) // 4 + others + IMAGE_TOKENS * len(images) + 1


def image_places(items: Iterable[Json]) -> list[str]:
    """The paths of all images in the conversation ``items``."""
    return [f"input[{index}].{place}" for index, item in enumerate(items) for place, _ in _images(item)]


def _as_sent(item: Json) -> Json:
    """The item without the id that it was given here, of which the upstream knows nothing.

    One without a type is a message, which not all upstreams know.
    """
    if item.get("type") is None:
        item = {**item, "type": "message"}
    id_ = item.get("id")
    if isinstance(id_, str) and _MADE_FOR_A_LIST.fullmatch(id_):
        return {name: value for name, value in item.items() if name != "id"}
    return item


def _images(item: Json) -> Iterator[tuple[str, Json]]:
    for name in ("content", "output"):
        parts = item.get(name)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, dict) and part.get("type") == "input_image":
                yield f"{name}[{index}]", part


def _url(part: Json) -> str:
    url = part.get("image_url")
    return url if isinstance(url, str) else ""
