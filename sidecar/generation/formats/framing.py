"""How a call is framed: the texts around a function's name and arguments, for whoever constrains what is generated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallFraming:
    """A call is ``begin``, the function's name, ``middle``, the arguments as JSON, ``end``.

    ``begin`` begins with ``trigger``, which is never written but there.
    """

    trigger: str
    begin: str
    middle: str
    end: str
