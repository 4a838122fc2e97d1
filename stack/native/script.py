"""The script language: from the input of a request to the steps that are played.

A step is a text, which is streamed as a message, word by word, or an object with one member:

========================  =============================================================================================
``reasoning``             a text: a reasoning item, with ``encrypted_content`` where ``include`` asks for it
``refusal``               a text: a message that refuses
``call``, ``custom``      ``[name, arguments]``: a call of a function or of a custom tool, its text streamed
``item``                  an item of any other type, added and done as it is
``search``                a query: a ``web_search_call`` with the events of its stages
``event``                 an event of any type; it gets the next ``sequence_number``
``raw``                   a text that is put into the stream as it is
``usage``                 what the response says of its usage, in place of the number of words
``sleep``                 seconds without a byte
``hang``                  nothing more until the client has gone
``break``                 the connection is closed; with ``"reset"``, it is reset
``stop``                  the body ends, without a last event
``error``                 an ``error`` event with this object, then ``response.failed``
``incomplete``            the answer ends for this reason
``http``                  ``{status, headers, body}``: another answer altogether
``length``                the ``content-length`` is so many bytes more than there will be
``gzip``                  the body is compressed, although nobody asked for that
``split``                 the stream is written in pieces of so many bytes
========================  =============================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Step = str | Json

MARKER = "script:"
DEFAULT: list[Step] = ["This upstream plays the script in its input."]


def find(body: Mapping[str, Any]) -> list[Step]:
    """The steps that a request asks for.

    Raises:
        ValueError: what follows the marker is no script.
    """
    _, marker, rest = _last_text(body.get("input")).rpartition(MARKER)
    if not marker:
        return DEFAULT
    script, _ = json.JSONDecoder().raw_decode(rest.lstrip())
    if isinstance(script, dict):
        script = script[body["model"]]
    if not isinstance(script, list):
        raise ValueError("The script is not a list")
    return script


def setting(steps: list[Step], name: str) -> Any:
    """The value of the step ``name``, which is about the whole answer; ``None`` where it is not there."""
    return next((step[name] for step in steps if isinstance(step, dict) and name in step), None)


def _last_text(given: Any) -> str:
    """The last text in an input that has a script, or the last at all."""
    if isinstance(given, str):
        return given
    texts = [text for item in given or () for text in _texts(item.get("content", item.get("output")))]
    return next((text for text in reversed(texts) if MARKER in text), "")


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if isinstance(part, dict) and "text" in part]
