"""A whole HTTP answer, made at once: every plain error, and every document that is no generated response."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers (lower-case names) and body. ``outcome`` is what logs say of it: ``ok`` or an error's code."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    outcome: str = "ok"

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Mapping[str, str] | None = None, outcome: str = "ok") -> Self:
        """``value`` as compact JSON in UTF-8."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        return cls(status, {"content-type": "application/json", **(headers or {})}, body, outcome)
