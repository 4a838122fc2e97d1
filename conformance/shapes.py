"""Kinds of JSON values, and whether an object has the members it should have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Kind(NamedTuple):
    """A kind of value, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


STRING = Kind("a string", lambda value: isinstance(value, str))
NAME = Kind("a string that is not empty", lambda value: isinstance(value, str) and value != "")
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
# JSON's true is an int to Python.
COUNT = Kind("an integer from 0", lambda value: type(value) is int and value >= 0)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
ARRAY = Kind("an array", lambda value: isinstance(value, list))


def misfits(value: Mapping[str, Any], members: Mapping[str, Kind]) -> list[str]:
    """A phrase for each of ``members`` that ``value`` lacks or has of another kind."""
    return [
        f"'{name}' is not {kind.words}" if name in value else f"'{name}' is missing"
        for name, kind in members.items()
        if not kind.fits(value.get(name))
    ]
