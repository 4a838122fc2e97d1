"""The form of the log: a JSON object a line for who gathers logs, words for who looks at a terminal.

A record that has ``members`` (:func:`with_members`) is about a request: they stand in its line as members of their own.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, TextIO

LogFormat = Literal["auto", "json", "text"]

_ATTRIBUTE = "members"
# Made once: json.dumps makes one each time.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def configure_logging(form: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Have this process write its log to ``stream``, standard error by default, from ``level`` on.

    ``auto`` is words on a terminal, JSON elsewhere. Of libraries, what is below INFO is left out at any level: it is no
    help here and may hold more than ours does.
    """
    stream = stream or sys.stderr
    words = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Words() if words else JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)
    # Only what is shown: the rest takes half of a line's time, and each request has a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    logging.getLogger("sidecar").setLevel(level.upper())


def with_members(members: Mapping[str, object]) -> dict[str, Any]:
    """What to give to a logger as ``extra``, so that a line has ``members``."""
    return {_ATTRIBUTE: members}


class JsonLines(logging.Formatter):
    """``time`` (UTC, as in Envoy's access log), ``level``, ``logger``, ``message``, then what else there is."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as one line."""
        line = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode({**line, **getattr(record, _ATTRIBUTE, {})})


class Words(logging.Formatter):
    """The local time, the level, who says it, and what; members that say something follow as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line, and an exception's lines below it."""
        members: Mapping[str, object] = getattr(record, _ATTRIBUTE, {})
        told = " ".join(f"{name}={value}" for name, value in members.items() if value not in (None, "", 0, False))
        name = record.name.removeprefix("sidecar.")
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{clock} {record.levelname:<7} {name}: {record.getMessage()}"
        line = f"{line} {told}" if told else line
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
