"""Signs of life of the models, which the workers of a node tell each other by files.

What one of them hears of a model counts for all, and one asks it for all. A file is a worker's own, in JSON, and
replaced as a whole; the others read it about twice a second. Times are those of the machine's monotonic clock, which
all processes share.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Sign:
    """What is known of one model; 0 is never.

    ``heard_at`` is when it last generated something, ``asked_at`` when it last was sent a canary. Nothing that it was
    sent since ``failed_at`` was answered, by a ``failure`` of this name; ``hangs`` is whether a request was waited for
    as long as it may be.
    """

    heard_at: float = 0.0
    failed_at: float = 0.0
    asked_at: float = 0.0
    failure: str = ""
    hangs: bool = False

    @property
    def fails(self) -> bool:
        """Whether it has failed, and not been heard of since."""
        return self.failed_at > self.heard_at

    def joined(self, other: Sign) -> Sign:
        """What two workers know together."""
        later = max(self, other, key=lambda sign: sign.failed_at)
        return replace(later, heard_at=max(self.heard_at, other.heard_at), asked_at=max(self.asked_at, other.asked_at))

    def between(self, begin: float, end: float) -> Sign:
        """The same without what was earlier or later: what is left of another life of the node, or of the machine."""
        times = (self.heard_at, self.failed_at, self.asked_at)
        heard_at, failed_at, asked_at = (at if begin <= at <= end else 0.0 for at in times)
        return replace(self, heard_at=heard_at, failed_at=failed_at, asked_at=asked_at)


class Signs:
    """Those that the worker in ``place`` knows; the files are in ``directory``, which is made.

    What was before ``since``, the worker's own start, is nothing to it.

    Raises:
        OSError: the directory cannot be written to.
    """

    def __init__(self, directory: Path, place: int, since: float) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self._directory = directory
        self._file = directory / f"worker-{place}.json"
        self._since = since
        self._own: dict[str, Sign] = {}
        self._others: dict[str, Sign] = {}
        self._changed = True
        self._locks = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    def __getitem__(self, model: str) -> Sign:
        """All that is known of ``model``."""
        return self._own.get(model, Sign()).joined(self._others.get(model, Sign()))

    def heard(self, model: str, at: float) -> None:
        """It has generated something."""
        own = self._own.get(model, Sign())
        if at > own.heard_at:
            self._note(model, replace(own, heard_at=at))

    def asked(self, model: str, at: float) -> None:
        """It is sent a canary."""
        self._note(model, replace(self._own.get(model, Sign()), asked_at=at))

    def failed(self, model: str, at: float, failure: str, *, hangs: bool) -> None:
        """Nothing that it was sent since ``at`` was answered."""
        self._note(model, replace(self._own.get(model, Sign()), failed_at=at, failure=failure, hangs=hangs))

    def share(self, now: float) -> None:
        """Tell the others what has changed, and read what they tell.

        Raises:
            OSError: the file cannot be written.
        """
        if self._changed:
            self._changed = False
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps({model: asdict(sign) for model, sign in self._own.items()}))
            new.replace(self._file)
        self._others = {}
        for file in self._directory.glob("worker-*.json"):
            if file == self._file:
                continue
            for model, sign in _read(file).items():
                known = self._others.get(model, Sign())
                self._others[model] = known.joined(sign.between(self._since, now))

    def claim(self, model: str) -> bool:
        """Whether no other worker asks ``model`` at the moment; then it is this one's until it is released, or ends."""
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(model))
        except OSError:
            return False
        return True

    def release(self, model: str) -> None:
        """Another worker may ask it."""
        fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, _place(model))

    def close(self) -> None:
        """This worker asks nobody any more."""
        os.close(self._locks)

    def _note(self, model: str, sign: Sign) -> None:
        self._own[model] = sign
        self._changed = True


def _read(file: Path) -> dict[str, Sign]:
    content: dict[str, Any] = {}
    # It may be removed, or be that of another release.
    with suppress(OSError, ValueError, TypeError):
        content = json.loads(file.read_text())
        return {model: Sign(**sign) for model, sign in content.items()}
    return {}


def _place(model: str) -> int:
    """The byte of the file of locks that stands for a model."""
    return int.from_bytes(blake2b(model.encode(), digest_size=6).digest())
