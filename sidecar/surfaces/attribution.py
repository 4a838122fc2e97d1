"""Whom a request is counted for beside its organization, and what its client calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.responses.request import ResponsesRequest

MOST_OF_A_USER = 256
"""Characters of an end user's name."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The end user that a client names, ``None`` where it names none, and the tags of a request, in its order.

    ``session`` is the conversation that it counts the request to, ``client_request_id`` its own id of the request.
    """

    end_user: str | None = None
    tags: tuple[str, ...] = ()
    session: str | None = None
    client_request_id: str | None = None

    @property
    def tag_list(self) -> str | None:
        """The tags as they are recorded: joined by commas, which none holds; ``None`` where there are none."""
        return ",".join(self.tags) or None


def by_body(headers: Mapping[str, str], request: ResponsesRequest) -> Attribution:
    """The end user that the body names, if a table could show it; no tags."""
    name = request.safety_identifier or request.user or ""
    return Attribution(name[:MOST_OF_A_USER] if name.isprintable() and name else None)
