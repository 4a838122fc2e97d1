"""The last requests that failed: which, when, of which model and by which code; nothing of whose they were or said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from sidecar.telemetry.recent.mapped import open_mapped, read_mapped

_LAYOUT = b"failures 1"
_SUFFIX = ".failures"
_RECORDS = 64
_RECORD_BYTES = 2048
_BYTES = _RECORDS * _RECORD_BYTES
# Clients may choose it. So cut, a record has room for all its members, however long they are as JSON.
_MOST_ID_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Failure:
    """One request: ``at`` is in seconds since the epoch, ``seconds`` is how long it took.

    ``code`` is a key of :data:`sidecar.responses.errors.CODES`, ``backend`` the class of the model runtime's failure,
    empty where it was none of that. ``model`` is empty where the request had not come so far.
    """

    at: float
    request_id: str
    surface: str
    model: str
    code: str
    backend: str
    seconds: float


class Failures:
    """Keeps the last 64 failures of one worker."""

    def __init__(self, directory: Path, index: int) -> None:
        """Go on in the file of the worker ``index``.

        Raises:
            OSError: it cannot be made.
        """
        self._bytes = open_mapped(directory / f"{index}{_SUFFIX}", _LAYOUT, _BYTES)
        records = list(_records(bytes(self._bytes)))
        self._next = max(records, key=lambda record: record[1].at)[0] + 1 if records else 0

    def note(self, failure: Failure) -> None:
        """Put it in the oldest one's place."""
        members = {**asdict(failure), "request_id": failure.request_id[:_MOST_ID_CHARACTERS]}
        at = self._next % _RECORDS * _RECORD_BYTES
        self._bytes[at : at + _RECORD_BYTES] = json.dumps(members, ensure_ascii=False).encode().ljust(_RECORD_BYTES)
        self._next += 1


def read_failures(directory: Path, most: int) -> list[Failure]:
    """The last ``most`` of all workers, the newest first. This reads files: it is not for an event loop."""
    found = [
        failure
        for path in directory.glob(f"*{_SUFFIX}")
        if (content := read_mapped(path, _LAYOUT, _BYTES)) is not None
        for _, failure in _records(content)
    ]
    return sorted(found, key=lambda failure: failure.at, reverse=True)[:most]


def _records(content: bytes) -> Iterator[tuple[int, Failure]]:
    """Those that are whole, with their places."""
    for place in range(_RECORDS):
        record = content[place * _RECORD_BYTES : (place + 1) * _RECORD_BYTES]
        try:
            yield place, Failure(**json.loads(record))
        except ValueError:
            # None has been there, or it is being written at this moment.
            continue
