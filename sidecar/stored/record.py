"""A response that is over, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.responses.json_text import Json, json_bytes
from sidecar.stored.items import as_array, lines_of, to_lines
from sidecar.stored.owner import Owner
from sidecar.stored.seals import NONCE_BYTES, DataKey, Place

DAY = 86_400_000_000
KEPT = 30 * DAY
"""For how long a response is kept after the latest one of its chain, in microseconds."""
MOST_BYTES = 8_000_000
"""A response whose items and object are larger together is not stored."""
NONCES_BYTES = 3 * NONCE_BYTES


@dataclass(frozen=True, slots=True)
class Record:
    """A response and its own items: those of the input, as lines, those of the output, and the object without them.

    ``announced`` tells that it has been known as one that is being made.
    """

    place: Place
    input: bytes
    output: bytes
    response: bytes
    announced: bool

    @classmethod
    def of(cls, response: Json, owner: Owner, input_lines: bytes, *, announced: bool) -> Record:
        """The record of a response object that is whole; it is the stored one that says ``store: true``."""
        place = Place(response["id"], owner, response["previous_response_id"])
        kept = {name: value for name, value in response.items() if name != "output"} | {"store": True}
        return cls(place, input_lines, to_lines(response["output"]), json_bytes(kept), announced)

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.input) + len(self.output) + len(self.response)

    @property
    def too_large(self) -> bool:
        """Whether it is too large to be stored."""
        return self.size > MOST_BYTES

    def seal(self, key: DataKey, nonces: bytes) -> SealedRecord:
        """The record sealed; ``nonces`` are :data:`NONCES_BYTES` of randomness."""
        place, (first, second, third) = (
            self.place,
            (nonces[at : at + NONCE_BYTES] for at in range(0, NONCES_BYTES, NONCE_BYTES)),
        )
        return SealedRecord(
            place,
            key.id,
            input=key.seal(self.input, place, "input", first),
            output=key.seal(self.output, place, "output", second),
            response=key.seal(self.response, place, "response", third),
            item_bytes=len(self.input) + len(self.output),
            announced=self.announced,
        )


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """A record as it lies in the store."""

    place: Place
    key_id: str
    input: bytes
    output: bytes
    response: bytes
    item_bytes: int
    announced: bool


def whole_response(response: bytes, output: bytes) -> bytes:
    """The response object with its output, as JSON."""
    return response.removesuffix(b"}") + b',"output":' + as_array(lines_of(output)) + b"}"
