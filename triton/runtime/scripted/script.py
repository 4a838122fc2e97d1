"""The script language: a JSON list in the prompt becomes the steps that the player takes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flavours.inputs import Rejected

MARKER = "script:"
DEFAULT_ANSWER = "This model plays the script in its prompt."

Encode = Callable[[str], list[int]]


@dataclass(frozen=True)
class Send:
    """One response with these ids."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Sleep:
    """A pause in seconds; a cancelled request does not sit it out."""

    seconds: float


@dataclass(frozen=True)
class Fail:
    """An error response; its final flag comes with it or separately."""

    message: str
    final_separately: bool


@dataclass(frozen=True)
class Hang:
    """Nothing more until the request is cancelled."""


@dataclass(frozen=True)
class Crash:
    """The end of the model's process."""


Step = Send | Sleep | Fail | Hang | Crash


@dataclass(frozen=True)
class Script:
    """Steps in order, and whether the request's end id follows them."""

    steps: tuple[Step, ...]
    end_id: bool = True

    @classmethod
    def find(cls, prompt: str, encode: Encode) -> "Script":
        """The script after the last marker of a prompt; without a marker, a fixed answer.

        Raises:
            Rejected: what follows the marker is no script.
        """
        _, marker, rest = prompt.rpartition(MARKER)
        if not marker:
            return cls((Send(tuple(encode(DEFAULT_ANSWER))),))
        try:
            elements, _ = json.JSONDecoder().raw_decode(rest.lstrip())
        except ValueError as error:
            raise Rejected(f"The script is not JSON: {error}") from error
        if not isinstance(elements, list):
            raise Rejected("The script is not a list")
        steps = [step for element in elements for step in _steps(element, encode)]
        return cls(tuple(steps), end_id={"no_end_id": True} not in elements)


def _steps(element: Any, encode: Encode) -> list[Step]:
    """The steps of one element.

    Raises:
        Rejected: it is not an element of the language.
    """
    match element:
        case str(text):
            return [Send(tuple(encode(text)))]
        case {"ids": [*ids]}:
            return [Send(tuple(ids))]
        case {"split_ids": str(text)}:
            return [Send((id_,)) for id_ in encode(text)]
        case {"repeat": [int(times), str(text), int() | float() as gap]}:
            return [Send(tuple(encode(text))), Sleep(gap)] * times
        case {"sleep": int() | float() as seconds}:
            return [Sleep(seconds)]
        case {"error": str(message)}:
            return [Fail(message, final_separately=element.get("final_separately", False))]
        case {"hang": True}:
            return [Hang()]
        case {"crash": True}:
            return [Crash()]
        case {"no_end_id": True}:
            return []
    raise Rejected(f"Unknown script element: {json.dumps(element)}")
