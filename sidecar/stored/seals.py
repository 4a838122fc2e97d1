"""What is stored for a team, sealed with its data key: contents of responses, and answers that may be given again.

The seal is AES-256-GCM (NIST SP 800-38D) with random nonces of 96 bits, which a key may make 2^32 of. The associated
data binds a sealed text to what it is, to the response's id, to its owner and to the response that it continued, so
that nothing opens anywhere but where it was written. A sealed text is a version byte, the nonce and the ciphertext
with its tag.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sidecar.stored.owner import Owner

Part = Literal["input", "output", "response", "answer"]

NONCE_BYTES = 12

_VERSION = b"\x01"


class SealBroken(Exception):
    """A sealed text that was changed, or moved from where it was written; the message names the response."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed text belongs; of an answer, ``response_id`` is the id of its key."""

    response_id: str
    owner: Owner
    previous_id: str | None

    def bound_to(self, part: Part) -> bytes:
        """The associated data of one part."""
        owner = self.owner
        names = (part, self.response_id, owner.organization, owner.project, owner.environment, self.previous_id)
        # With their lengths, so that no two lists of names look alike.
        return "".join([f"{len(name)}:{name}," for name in names if name is not None]).encode()


class DataKey:
    """The key of a team; ``key`` is 32 bytes."""

    def __init__(self, id_: str, key: bytes) -> None:
        self.id = id_
        self._cipher = AESGCM(key)
        self._key = key

    def seal(self, text: bytes, place: Place, part: Part, nonce: bytes) -> bytes:
        """``text`` sealed; ``nonce`` is 12 random bytes that are used this once."""
        return _VERSION + nonce + self._cipher.encrypt(nonce, text, _VERSION + place.bound_to(part))

    def open(self, sealed: bytes, place: Place, part: Part) -> bytes:
        """The text that was sealed for this place.

        Raises:
            SealBroken: this is not it.
        """
        version, nonce = sealed[:1], sealed[1 : 1 + NONCE_BYTES]
        try:
            return self._cipher.decrypt(nonce, sealed[1 + NONCE_BYTES :], version + place.bound_to(part))
        except (InvalidTag, ValueError):
            raise SealBroken(f"the {part} of {place.response_id} is not what was stored") from None

    def digest(self, *texts: bytes) -> str:
        """What tells one list of texts from all others, and nothing of them to who has not the key: 64 hexadecimal
        digits of HMAC-SHA256 (RFC 2104), with a key of its own."""
        key = hmac.digest(self._key, b"digest", "sha256")
        # With their lengths, as above.
        return hmac.digest(key, b"".join([b"%d:%b," % (len(text), text) for text in texts]), "sha256").hex()
