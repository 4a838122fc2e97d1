"""One pydantic error, told as the Responses API tells it: a code, a path in OpenAI's bracket style, one sentence.

The sentences hold names of parameters, types and enum values, cut to a printable length; never other payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sidecar.responses.errors import ApiError
from sidecar.responses.parts import PART_TYPES
from sidecar.responses.wording import shown

EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "string_or_list_type": "a string or an array",
    "dict_type": "an object",
    "model_type": "an object",
}
"""What each type error, of pydantic or of our own, missed."""

BOUND = {
    "greater_than_equal": lambda context: f"at least {context['ge']:g}",
    "less_than_equal": lambda context: f"at most {context['le']:g}",
    "string_too_short": lambda context: f"at least {context['min_length']} character",
    "string_too_long": lambda context: f"at most {context['max_length']} characters",
    "too_long": lambda context: f"at most {context['max_length']} entries",
    "string_pattern_mismatch": lambda context: f"a string that matches {context['pattern']}",
}
"""What each of pydantic's limits asks for."""

ROLES = "'user', 'assistant', 'system' or 'developer'"

CHAT_PARTS = {"text": "input_text", "image_url": "input_image"}
"""Parts of the chat completions API, and the part that carries the same here."""

TypeWords = Mapping[str, Mapping[str, str]]
"""A surface's own words for types that it refuses: by union (``item``, ``part``, ``tool``), then by type.

``{path}`` stands for the path of the object.
"""


def to_api_error(error: ValidationError, words: TypeWords) -> ApiError:
    """The first fault that pydantic found, as an :class:`ApiError`; ``words`` replace the general ones for a type."""
    first = error.errors(include_url=False)[0]
    path = _path(first["loc"])
    kind = first["type"]
    context = first.get("ctx", {})
    if kind == "request_fault":
        member = context["member"]
        joint = "." if path and member and not member.startswith("[") else ""
        path += joint + member
        return ApiError(context["code"], context["message"].replace("{path}", path), path or None)
    if kind == "missing":
        return _invalid(f"Missing required parameter: '{path}'.", path)
    if kind == "literal_error":
        return _not_in_enum(first, path)
    if kind == "union_tag_not_found":
        return _no_type(first["input"], path)
    if kind == "union_tag_invalid":
        return _unknown_type(context, path, words)
    if kind in BOUND:
        return _invalid(f"Invalid '{path}': expected {BOUND[kind](context)}.", path)
    if kind in EXPECTED:
        return _wrong_type(EXPECTED[kind], first["input"], path)
    return _invalid(f"Invalid value for '{path}'.", path)


def _path(location: tuple[int | str, ...]) -> str:
    """``("input", 0, "<message>", "role")`` → ``input[0].role``; steps in angle brackets are union tags."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith("<"):
            path += f".{shown(step)}" if path else shown(step)
    return path


def _not_in_enum(error: ErrorDetails, path: str) -> ApiError:
    # The role tells messages of two models apart, so neither knows the other's.
    expected = ROLES if error["loc"][-2:] == ("<message>", "role") else error["ctx"]["expected"]
    if not isinstance(error["input"], str):
        return _wrong_type(f"one of {expected}", error["input"], path)
    return _invalid(f"Invalid value for '{path}': '{shown(error['input'])}'. Supported values are: {expected}.", path)


def _no_type(value: Any, path: str) -> ApiError:
    if not isinstance(value, dict):
        return _wrong_type("an object", value, path)
    if value.get("type") is None:
        return _invalid(f"Missing required parameter: '{path}.type'.", f"{path}.type")
    return _wrong_type("a string", value["type"], f"{path}.type")


def _wrong_type(expected: str, value: Any, path: str) -> ApiError:
    return _invalid(f"Invalid type for '{path}': expected {expected}, but got {_kind(value)} instead.", path)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "a string", int: "an integer", float: "a decimal number", list: "an array", dict: "an object"}
    return names.get(type(value), "null")


def _unknown_type(context: dict[str, Any], path: str, words: TypeWords) -> ApiError:
    union = context["discriminator"].removesuffix("_type()")
    kind = context["tag"][1:-1]
    if kind in words.get(union, ()):
        return _unsupported(words[union][kind].replace("{path}", path), path)
    return UNKNOWN_TYPE[union](kind, context["expected_tags"].replace("<", "").replace(">", ""), path)


def _unknown_item(kind: str, expected: str, path: str) -> ApiError:
    return _unsupported(f"'{path}' is an item of type '{shown(kind)}', which is not supported.", path)


def _unknown_part(kind: str, expected: str, path: str) -> ApiError:
    if kind in CHAT_PARTS:
        message = (
            f"Invalid value for '{path}.type': '{kind}' is a part of chat completions; use '{CHAT_PARTS[kind]}' here."
        )
        return _invalid(message, f"{path}.type")
    if kind in PART_TYPES:
        message = f"Invalid value for '{path}.type': '{kind}'. Supported values here are: {expected}."
        return _invalid(message, f"{path}.type")
    return _unsupported(f"'{path}' is a part of type '{shown(kind)}', which is not supported.", path)


def _unknown_tool(kind: str, expected: str, path: str) -> ApiError:
    message = f"'{path}' is a tool of type '{shown(kind)}', which is not supported; only {expected} tools are."
    return _unsupported(message, path)


def _unknown_choice(kind: str, expected: str, path: str) -> ApiError:
    return _unsupported(f"'{path}' is a choice of type '{shown(kind)}', which is not supported.", path)


def _unknown_format(kind: str, expected: str, path: str) -> ApiError:
    return _invalid(
        f"Invalid value for '{path}.type': '{shown(kind)}'. Supported values are: {expected}.", f"{path}.type"
    )


UNKNOWN_TYPE: dict[str, Callable[[str, str, str], ApiError]] = {
    "item": _unknown_item,
    "part": _unknown_part,
    "tool": _unknown_tool,
    "tool_choice": _unknown_choice,
    "format": _unknown_format,
}
"""The answer to an unknown type and the list of expected ones, by the union that met it: what its discriminator, as
pydantic writes it, begins with."""


def _unsupported(message: str, path: str) -> ApiError:
    return ApiError("unsupported_parameter", message, path)


def _invalid(message: str, path: str) -> ApiError:
    return ApiError("invalid_request", message, path)
