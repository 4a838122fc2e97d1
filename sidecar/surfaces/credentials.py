"""Which credentials a surface takes, and where a request shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Credentials:
    """``keys`` are the kinds of key that are taken as ``Authorization: Bearer``, by the names that are stored.

    ``key_header`` is another header (lower-case) that takes one, without a scheme. ``sessions`` is whether a session's
    cookie counts.
    """

    keys: tuple[str, ...] = ("key", "token")
    key_header: str | None = None
    sessions: bool = True

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that may hold one, which go no further than to whoever reads it."""
        return ("authorization", "cookie", *((self.key_header,) if self.key_header else ()))


KEYS_AND_SESSIONS = Credentials()
"""Keys and tokens of organizations, and sessions of their users."""
