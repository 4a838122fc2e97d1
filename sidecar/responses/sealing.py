"""Reasoning and summaries as sealed texts: opaque to clients, and readable again when they send them back.

Clients that keep nothing on the server replay them as ``encrypted_content``. The seal is AES-SIV (RFC 5297): it needs
no randomness, and a text that was changed, or sealed with another key or for another purpose, does not open. A sealed
text is base64url of one version byte, a nonce and the ciphertext.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from pydantic import BaseModel

from sidecar.responses.items import ReasoningItem
from sidecar.responses.parts import ReasoningText

KEY_BYTES = 64
"""Bytes of a key: two of AES-256."""

_REASONING = b"reasoning"
_COMPACTION = b"compaction\0"
_VERSION = b"\x01"
_NONCE_BYTES = 12

AnyItem = TypeVar("AnyItem", bound=BaseModel)


class Sealer:
    """Seals texts with ``key``; opens what was sealed with it or one of ``others``.

    Raises:
        ValueError: a key is not :data:`KEY_BYTES` long.
    """

    def __init__(self, key: bytes, *others: bytes) -> None:
        if any(len(one) != KEY_BYTES for one in (key, *others)):
            raise ValueError(f"a sealing key has {KEY_BYTES} bytes")
        self._cipher, *_ = self._ciphers = [AESSIV(one) for one in (key, *others)]

    def seal(self, text: str, item_id: str, purpose: bytes = _REASONING) -> str:
        """``text`` of the item ``item_id``, which keeps equal texts from looking equal."""
        nonce = hashlib.blake2b(item_id.encode(), digest_size=_NONCE_BYTES).digest()
        sealed = self._cipher.encrypt(text.encode(), [_VERSION + purpose, nonce])
        return urlsafe_b64encode(_VERSION + nonce + sealed).decode()

    def unseal(self, sealed: str, purpose: bytes = _REASONING) -> str | None:
        """The text in ``sealed``; ``None`` where it was not sealed with these keys, for this purpose."""
        try:
            data = urlsafe_b64decode(sealed.encode())
        except ValueError:
            return None
        version, nonce, ciphertext = data[:1], data[1 : 1 + _NONCE_BYTES], data[1 + _NONCE_BYTES :]
        for cipher in self._ciphers:
            with suppress(ValueError, InvalidTag):
                return cipher.decrypt(ciphertext, [version + purpose, nonce]).decode()
        return None


@dataclass(frozen=True, slots=True)
class TeamSeal:
    """Seals summaries for one ``team``, the id of an organization, and opens those only."""

    sealer: Sealer
    team: str

    def seal(self, summary: str, item_id: str) -> str:
        """``summary`` of the item ``item_id``."""
        return self.sealer.seal(summary, item_id, self._purpose)

    def unseal(self, sealed: str) -> str | None:
        """The summary in ``sealed``; ``None`` where it was not sealed for this team."""
        return self.sealer.unseal(sealed, self._purpose)

    @property
    def _purpose(self) -> bytes:
        return _COMPACTION + self.team.encode()


def unseal_reasoning(items: Sequence[AnyItem], sealer: Sealer) -> list[AnyItem]:
    """The same items, reasoning that is only there sealed made readable where these keys open it."""
    return [_unseal(item, sealer) for item in items]


def _unseal(item: AnyItem, sealer: Sealer) -> AnyItem:
    if not isinstance(item, ReasoningItem) or item.text or not isinstance(item.encrypted_content, str):
        return item
    text = sealer.unseal(item.encrypted_content)
    if not text:
        return item
    return item.model_copy(update={"content": [ReasoningText(type="reasoning_text", text=text)]})
