"""What a failure of whoever generates is: how it is told to the client, and what only the operator sees of it."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.responses.errors import ApiError


@dataclass(eq=False)
class BackendError(ApiError):
    """A failure of the model runtime, or of a native upstream.

    ``failure`` names its class for logs and metrics; ``words`` are the backend's own, for the operator alone.
    """

    failure: str = ""
    words: str = ""


@dataclass(frozen=True)
class Failure:
    """A class of failures and how it is told to the client."""

    name: str
    code: str
    message: str
    param: str | None = None

    def error(self, words: str = "") -> BackendError:
        """One failure of the class."""
        return BackendError(self.code, self.message, self.param, failure=self.name, words=words)
