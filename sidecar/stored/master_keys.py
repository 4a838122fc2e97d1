"""Master keys: they wrap the teams' data keys, and nothing else, so that they can be changed without touching a record.

A data key is wrapped by AES-256-GCM (NIST SP 800-38D); the associated data binds it to its id and its team. The wrapped
key is a nonce of 12 bytes and the ciphertext with its tag.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
"""Bytes of a key, of either kind: one of AES-256."""
NONCE_BYTES = 12


class KeyUnknown(Exception):
    """A data key that none of the master keys opens; the message names the key that would, never a secret."""


class MasterKeys:
    """The first of ``keys`` wraps; any of them opens what it has wrapped.

    Raises:
        ValueError: there is none, or one is not :data:`KEY_BYTES` long.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"a master key has {KEY_BYTES} bytes, and one at least is needed")
        self._ciphers = {fingerprint(key): AESGCM(key) for key in keys}
        self.first = fingerprint(keys[0])
        """The fingerprint of the key that wraps."""

    def __contains__(self, master: str) -> bool:
        """Whether the key of this fingerprint is among them."""
        return master in self._ciphers

    def wrap(self, data_key: bytes, key_id: str, organization: str, nonce: bytes) -> bytes:
        """The data key of a team as it may lie in the store; ``nonce`` is :data:`NONCE_BYTES` of randomness."""
        return nonce + self._ciphers[self.first].encrypt(nonce, data_key, _bound_to(key_id, organization))

    def unwrap(self, wrapped: bytes, master: str, key_id: str, organization: str) -> bytes:
        """The data key that the key ``master`` has wrapped.

        Raises:
            KeyUnknown: that key is not here, or this is not what it has wrapped for this team.
        """
        cipher = self._ciphers.get(master)
        if cipher is None:
            raise KeyUnknown(f"the data key {key_id} is wrapped by the master key {master}, which is not configured")
        nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, sealed, _bound_to(key_id, organization))
        except (InvalidTag, ValueError):
            raise KeyUnknown(f"the data key {key_id} is not what the master key {master} has wrapped") from None


def fingerprint(key: bytes) -> str:
    """What tells a master key from others, and nothing of it: the first 16 hexadecimal digits of a hash."""
    return hashlib.blake2b(key, digest_size=8, person=b"master key").hexdigest()


def _bound_to(key_id: str, organization: str) -> bytes:
    return json.dumps(["data key", key_id, organization]).encode()
