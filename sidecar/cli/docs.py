"""The documents that are made from the code, so that they cannot say anything else than it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sidecar.cli.configuration_page import configuration_page
from sidecar.cli.exchange_page import exchange_page
from sidecar.cli.metrics_page import metrics_page
from sidecar.exchange.transitions import TRANSITIONS
from sidecar.responses.errors import CODES, ApiError, ErrorKind
from sidecar.surfaces import SURFACES, Surface
from sidecar.surfaces.endpoints import Operation
from sidecar.surfaces.openapi import document
from sidecar.surfaces.parameters import Parameter, find_default, json_value

_ERRORS_HEAD = """\
# Errors

<!-- Made from sidecar/responses/errors.py by `responses-sidecar docs`. -->

A request that fails is answered with an HTTP status and this body; all members are always there, and `message` quotes
no more of the request than a short name: a key, a type, an id. On the bureau surface `error` has a fifth, `request_id`.

```json
{"error": {"message": "…", "type": "invalid_request_error", "param": "input[0].content", "code": "invalid_request"}}
```

A stream that fails after its first token ends with one `error` event that holds the same members, at its top level and
under `error`. Just before it, where the surface's `failed_event` is on, `response.failed` tells the same in the
response object, whose `error.code` is one of OpenAI's own: that of the column "Failed". On the bureau surface the code
of every such event is `stream_interrupted`. Every response has an `x-request-id`.

Envoy refuses what is not HTTP as it should be in the same form, with the code `invalid_request` and a status of its
own: 408 when a request does not come within `request_timeout`, 426 for HTTP/1.0, 431 for headers above its limit.

`Retry-After` is in seconds. `x-should-retry: false` tells SDKs not to try again although the status would make them.

"""

_PARAMETERS_HEAD = """\
# Parameters

<!-- Made from the tables in sidecar/surfaces by `responses-sidecar docs`. -->

`null` is the same as leaving a parameter out. A parameter that is not in the table is refused with code
`unsupported_parameter`, and so is a value that its row does not let through.

"""


def generated_docs() -> dict[str, str]:
    """The text of each document, by its file's name."""
    return {
        "configuration.md": configuration_page(),
        "errors.md": _errors_page(),
        "exchange.md": exchange_page(TRANSITIONS),
        "metrics.md": metrics_page(),
        "parameters.md": parameters_page(SURFACES),
        "openapi.json": _document("node"),
        "openapi.bureau.json": _document("bureau"),
    }


def _document(surface: str) -> str:
    return json.dumps(document(SURFACES[surface]), indent=2, ensure_ascii=False) + "\n"


def write_docs(directory: Path) -> None:
    """Write them all into ``directory``."""
    for name, text in generated_docs().items():
        (directory / name).write_text(text, encoding="utf-8")


def _errors_page() -> str:
    columns = ("Code", "Status", "Type", "Failed", "Headers", "Surfaces", "When", "What to do")
    head = f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|\n"
    return _ERRORS_HEAD + head + "".join(_row(code, kind) for code, kind in CODES.items())


def _row(code: str, kind: ErrorKind) -> str:
    advice = [] if kind.retry_after is None else [f"`Retry-After: {kind.retry_after}`"]
    advice += [] if kind.should_retry else ["`x-should-retry: false`"]
    failed = f"`{ApiError(code, '').failed_code}`"
    status = "in streams" if kind.in_streams else str(kind.status)
    surfaces = ", ".join(name for name, surface in SURFACES.items() if code in surface.codes)
    cells = (f"`{code}`", status, f"`{kind.type}`", failed, ", ".join(advice), surfaces, kind.meaning, kind.remedy)
    return f"| {' | '.join(cells)} |\n"


def parameters_page(surfaces: Mapping[str, Surface]) -> str:
    """The tables of all ``surfaces``."""
    return _PARAMETERS_HEAD + "\n".join(_parameters_section(surface) for surface in surfaces.values())


def _parameters_section(surface: Surface) -> str:
    (create,) = [endpoint for endpoint in surface.endpoints if endpoint.operation is Operation.CREATE_RESPONSE]
    head = (
        f"## `{create.method} {create.path}`\n\n| Parameter | Treatment | Default | Description |\n|---|---|---|---|\n"
    )
    return head + "".join(_parameter_row(row, surface) for row in surface.parameters)


def _parameter_row(row: Parameter, surface: Surface) -> str:
    field = surface.request_model.model_fields.get(row.name)
    default = "required" if field and field.is_required() else _shown(find_default(surface.request_model, row.name))
    return f"| `{row.name}` | {row.treatment.label} | {default} | {row.description} |\n"


def _shown(default: Any) -> str:
    # The members of settings objects have rows of their own.
    nothing = default in (None, [], {}) or isinstance(default, BaseModel)
    return "" if nothing else f"`{json_value(default)}`"
