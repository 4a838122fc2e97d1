"""Errors as the Responses API tells them: one table maps each code to its HTTP status, type and retry advice.

Source: the node surface's error list; the shape of ``error`` is OpenAI's, all four members always present.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple


class ErrorKind(NamedTuple):
    """What a code means on the wire.

    ``status`` is the HTTP status, ``type`` OpenAI's error type, ``retry_after`` the ``Retry-After`` value in seconds
    where waiting helps (``None`` where the client should not be told to wait), ``should_retry`` is ``False`` where
    sending the same request again cannot help although the status would make an SDK try.
    """

    status: int
    type: str
    retry_after: int | None = None
    should_retry: bool = True


INVALID = "invalid_request_error"
LIMIT = "rate_limit_error"
SERVER = "server_error"

CODES: dict[str, ErrorKind] = {
    "invalid_request": ErrorKind(400, INVALID),
    "unsupported_parameter": ErrorKind(400, INVALID),
    "context_length_exceeded": ErrorKind(400, INVALID),
    "unauthorized": ErrorKind(401, "authentication_error"),
    "credits_exhausted": ErrorKind(402, LIMIT),
    "forbidden": ErrorKind(403, "permission_error"),
    "egress_denied": ErrorKind(403, "permission_error"),
    "not_found": ErrorKind(404, INVALID),
    "model_not_available": ErrorKind(404, INVALID),
    "method_not_allowed": ErrorKind(405, INVALID),
    "payload_too_large": ErrorKind(413, INVALID),
    "unsupported_media_type": ErrorKind(415, INVALID),
    "rate_limited": ErrorKind(429, LIMIT, retry_after=1),
    "concurrency_limited": ErrorKind(429, LIMIT, retry_after=1),
    "quota_exceeded": ErrorKind(429, LIMIT, should_retry=False),
    "internal": ErrorKind(500, SERVER),
    "infer_backend_unavailable": ErrorKind(503, SERVER, retry_after=5),
    "capacity_unavailable": ErrorKind(503, SERVER, retry_after=1),
    "node_unavailable": ErrorKind(503, SERVER, retry_after=5),
}


@dataclass(eq=False)
class ApiError(Exception):
    """A request that cannot be served, or an answer that cannot be finished, in the words shown to the client.

    ``code`` is a key of :data:`CODES`; ``message`` is one short sentence that never quotes the payload; ``param`` is a
    path such as ``input[0].content[1]``. ``status`` and ``retry_after`` (seconds) replace the table's where one
    occurrence differs, as a timeout (504) of the same code does.
    """

    code: str
    message: str
    param: str | None = None
    status_override: int | None = None
    retry_after_override: int | None = None

    @property
    def kind(self) -> ErrorKind:
        """The code's row in the table."""
        return CODES[self.code]

    @property
    def status(self) -> int:
        """The HTTP status, 400–599."""
        return self.status_override or self.kind.status

    def fields(self) -> dict[str, str | None]:
        """The four members of OpenAI's ``error`` object, in OpenAI's order."""
        return {"message": self.message, "type": self.kind.type, "param": self.param, "code": self.code}

    def body(self) -> bytes:
        """The JSON body of a plain HTTP error."""
        return json.dumps({"error": self.fields()}, ensure_ascii=False, separators=(",", ":")).encode()

    def headers(self) -> dict[str, str]:
        """Headers that advise the client whether and when to try again, besides ``content-type``."""
        headers = {"content-type": "application/json"}
        retry_after = self.kind.retry_after if self.retry_after_override is None else self.retry_after_override
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        if not self.kind.should_retry:
            headers["x-should-retry"] = "false"
        return headers
