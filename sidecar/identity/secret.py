"""The form of credentials: a prefix that says the kind, a random secret, and a checksum over both.

The checksum tells a mistyped or truncated key from an unknown one without a look-up. It is no protection: anybody can
compute it. Source of the form: GitHub's tokens, whose checksum is a CRC-32 in six base62 digits too.
"""

from __future__ import annotations

import re
import secrets
import string
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from zlib import crc32

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
# 32 digits of base62 hold 190 bits.
_SECRET_DIGITS = 32
_CHECKSUM_DIGITS = 6
_HINT_DIGITS = 4
_FORM = re.compile(rf"(?:b3os_(?:sk|pat|ses)|ib_live)_[0-9A-Za-z]{{{_SECRET_DIGITS + _CHECKSUM_DIGITS}}}")


class Kind(StrEnum):
    """What a credential is. The value is the one that is stored."""

    KEY = "key"
    TOKEN = "token"
    SESSION = "session"
    PROJECT = "project"

    @property
    def prefix(self) -> str:
        """What its text begins with."""
        return _PREFIXES[self]

    @property
    def id_prefix(self) -> str:
        """What its id begins with."""
        return _ID_PREFIXES[self]


_PREFIXES = {
    Kind.KEY: "b3os_sk_",
    Kind.TOKEN: "b3os_pat_",
    Kind.SESSION: "b3os_ses_",
    Kind.PROJECT: "ib_live_",
}
_ID_PREFIXES = {Kind.KEY: "key_", Kind.TOKEN: "pat_", Kind.SESSION: "ses_", Kind.PROJECT: "prk_"}


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential as whoever holds it knows it. ``repr`` does not show it, so that no log or traceback can."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"

    @property
    def digest(self) -> bytes:
        """What is stored of it, 32 bytes.

        One pass of SHA-256 is right here: the slow and salted functions for passwords make guessing dear, and nobody
        guesses one of 2^190 secrets. It is made for every request, so a slow one would be a way to stop the node.
        """
        return sha256(self.text.encode()).digest()

    @property
    def hint(self) -> str:
        """Its last characters, by which a person recognises it in a list; they tell 24 of its 190 bits."""
        return self.text[-_HINT_DIGITS:]

    @property
    def is_whole(self) -> bool:
        """Whether it has the form of a credential, and its checksum matches."""
        form = _FORM.fullmatch(self.text)
        return form is not None and self.text.endswith(_checksum(self.text[:-_CHECKSUM_DIGITS]))

    def is_of(self, *kinds: Kind) -> bool:
        """Whether it begins as credentials of one of ``kinds`` do."""
        return self.text.startswith(tuple(kind.prefix for kind in kinds))


def mint(kind: Kind) -> Secret:
    """A new credential."""
    body = kind.prefix + "".join(secrets.choice(_DIGITS) for _ in range(_SECRET_DIGITS))
    return Secret(body + _checksum(body))


def _checksum(body: str) -> str:
    rest = crc32(body.encode())
    digits = ""
    for _ in range(_CHECKSUM_DIGITS):
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
