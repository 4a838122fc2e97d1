"""The one place that makes ids: ``resp_<ulid>``, ``msg_|rs_|fc_|…<ulid>_<output_index>``, ``call_<random>``.

Items of an input that came without one have ``<prefix>_<ulid>_i<index>``.

All ids of one response share one ULID (26 characters, lower case, Crockford's base 32), so that a log line about an
item leads to its response. Time and randomness are passed in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

ItemKind = Literal[
    "message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "apply_patch_call",
    "compaction",
]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PREFIX = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "apply_patch_call": "apc",
    "apply_patch_call_output": "apco",
    "compaction": "cmp",
}


def ulid(unix_ms: int, randomness: bytes) -> str:
    """A lower-case ULID from milliseconds since the epoch and 10 random bytes (github.com/ulid/spec).

    Raises:
        ValueError: ``randomness`` is not 10 bytes long.
    """
    if len(randomness) != 10:
        raise ValueError("a ULID takes 10 random bytes")
    value = (unix_ms & (1 << 48) - 1) << 80 | int.from_bytes(randomness, "big")
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True, slots=True)
class ResponseIds:
    """The ids of one response and of everything in it."""

    ulid: str

    @property
    def response(self) -> str:
        """The response's id."""
        return f"resp_{self.ulid}"

    def item(self, kind: ItemKind, output_index: int) -> str:
        """The id of the item at ``output_index``."""
        return f"{_PREFIX[kind]}_{self.ulid}_{output_index}"

    def input_item(self, type_: str, index: int) -> str:
        """The id of the item at ``index`` of the request's input, where it has none of its own."""
        return f"{_PREFIX.get(type_, 'item')}_{self.ulid}_i{index}"

    def call(self, output_index: int) -> str:
        """The ``call_id`` of the call at ``output_index``: as random as the ULID, and different from it."""
        digest = hashlib.blake2b(f"{self.ulid} {output_index}".encode(), digest_size=12)
        return f"call_{digest.hexdigest()}"
