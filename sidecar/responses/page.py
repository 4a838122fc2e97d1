"""Which page of a list is asked for, as OpenAI's lists have it: ``limit``, ``order`` and ``after``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import parse_qs

from sidecar.responses.errors import ApiError
from sidecar.responses.wording import shown

_MOST = 100


@dataclass(frozen=True, slots=True)
class Page:
    """Which page is asked for; ``after`` is the id of the entry before it, ``desc`` begins with the newest."""

    limit: int = 20
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None

    @classmethod
    def of(cls, query: str) -> Self:
        """The page that a URL's ``query`` asks for; what it does not know in it is ignored, as OpenAI does.

        Raises:
            ApiError: ``invalid_request``, a value is not one that the parameter can have. ``unsupported_parameter``,
                the page before an entry is asked for.
        """
        given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        if given.get("before"):
            raise ApiError("unsupported_parameter", "before is not supported; use after, and order.", "before")
        if given.get("after") == "":
            raise ApiError("invalid_request", "'after' must be the id of an entry.", "after")
        limit, order = given.get("limit", "20"), given.get("order", "desc")
        if not (limit.isascii() and limit.isdigit() and len(limit) <= len(str(_MOST)) and 1 <= int(limit) <= _MOST):
            raise ApiError("invalid_request", f"'limit' must be a whole number from 1 to {_MOST}.", "limit")
        if order not in ("asc", "desc"):
            raise ApiError("invalid_request", "'order' must be 'asc' or 'desc'.", "order")
        return cls(int(limit), "asc" if order == "asc" else "desc", given.get("after"))


def nothing_after(id_: str) -> ApiError:
    """What is said where ``after`` is not in the list."""
    return ApiError("invalid_request", f"There is no item {shown(id_)} in this list.", "after")
