"""On whose behalf a request is: what Envoy's authentication tells in request headers that no client can set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

ORGANIZATION_HEADER = "x-responses-organization"
KEY_HEADER = "x-responses-key"
USER_HEADER = "x-responses-user"
PROJECT_HEADER = "x-responses-project"
ENVIRONMENT_HEADER = "x-responses-environment"
CALLER_HEADERS = (ORGANIZATION_HEADER, KEY_HEADER, USER_HEADER, PROJECT_HEADER, ENVIRONMENT_HEADER)
"""All of them; Envoy removes those that a client sent before anything reads them."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The ids of an organization, of the credential that was used, and of the user it belongs to.

    ``project`` and ``environment`` are the credential's, where it belongs to a project of the organization.

    Each is empty where it is not known: nobody is where no authentication stands before the sidecar.
    """

    organization: str = ""
    key: str = ""
    user: str = ""
    project: str = ""
    environment: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """The caller that ``headers``, with lower-case names, tell of."""
        return cls(*(headers.get(name, "") for name in CALLER_HEADERS))

    def headers(self) -> dict[str, str]:
        """The headers that tell of it; none for what is not known."""
        members = (self.organization, self.key, self.user, self.project, self.environment)
        values = zip(CALLER_HEADERS, members, strict=True)
        return {name: value for name, value in values if value}
