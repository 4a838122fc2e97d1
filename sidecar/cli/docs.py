"""The documents that are made from the code, so that they cannot say anything else than it does."""

from __future__ import annotations

import json
from pathlib import Path

from sidecar.responses.errors import CODES, ErrorKind
from sidecar.surfaces import SURFACES
from sidecar.surfaces.openapi import document

_ERRORS_HEAD = """\
# Errors

<!-- Made from sidecar/responses/errors.py by `responses-sidecar docs`. -->

A request that fails is answered with an HTTP status and this body; all four members are always there, and `message`
quotes no more of the request than a short name: a key, a type, an id.

```json
{"error": {"message": "…", "type": "invalid_request_error", "param": "input[0].content", "code": "invalid_request"}}
```

A stream that fails after its first token ends with one `error` event that holds the same members, at its top level and
under `error`. Every response has an `x-request-id`.

`Retry-After` is in seconds. `x-should-retry: false` tells SDKs not to try again although the status would make them.

"""


def generated_docs() -> dict[str, str]:
    """The text of each document, by its file's name."""
    return {
        "errors.md": _errors_page(),
        "openapi.json": json.dumps(document(SURFACES["node"]), indent=2, ensure_ascii=False) + "\n",
    }


def write_docs(directory: Path) -> None:
    """Write them all into ``directory``."""
    for name, text in generated_docs().items():
        (directory / name).write_text(text, encoding="utf-8")


def _errors_page() -> str:
    head = "| Code | Status | Type | Headers | When | What to do |\n|---|---|---|---|---|---|\n"
    return _ERRORS_HEAD + head + "".join(_row(code, kind) for code, kind in CODES.items())


def _row(code: str, kind: ErrorKind) -> str:
    advice = [] if kind.retry_after is None else [f"`Retry-After: {kind.retry_after}`"]
    advice += [] if kind.should_retry else ["`x-should-retry: false`"]
    cells = (f"`{code}`", str(kind.status), f"`{kind.type}`", ", ".join(advice), kind.meaning, kind.remedy)
    return f"| {' | '.join(cells)} |\n"
