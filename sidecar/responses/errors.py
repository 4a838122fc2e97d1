"""Errors as the Responses API tells them: one table maps each code to its HTTP status, type and retry advice.

The shape of ``error`` is OpenAI's, all four members always present; a surface may add members of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sidecar.responses.reply import Reply


class ErrorKind(NamedTuple):
    """What a code means in HTTP, and in words.

    ``status`` is the HTTP status, ``type`` OpenAI's error type. ``meaning`` says when the code happens, ``remedy`` what
    a client can do. ``retry_after`` is the ``Retry-After`` value in seconds where waiting helps (``None`` where the
    client should not be told to wait), ``should_retry`` is ``False`` where sending the same request again cannot help
    although the status would make an SDK try. One ``in_streams`` alone is never an HTTP error.
    """

    status: int
    type: str
    meaning: str
    remedy: str
    retry_after: int | None = None
    should_retry: bool = True
    in_streams: bool = False


CHALLENGE = "Bearer"
"""How a client can tell who it is, told with every 401."""

INVALID = "invalid_request_error"
LIMIT = "rate_limit_error"
PERMISSION = "permission_error"
SERVER = "server_error"

OPENAI_FAILED_CODES = ("server_error", "rate_limit_exceeded", "invalid_prompt")
"""Those of OpenAI's codes for a response that failed which can happen here."""

FAILED_CODES = {INVALID: "invalid_prompt", LIMIT: "rate_limit_exceeded"}
"""The code of a response that failed, by the type of the error; ``server_error`` for all others."""

CODES: dict[str, ErrorKind] = {
    "invalid_request": ErrorKind(
        400,
        INVALID,
        "The request is malformed, or a parameter has a value that it cannot have.",
        "Mend the parameter that `param` names.",
    ),
    "unsupported_parameter": ErrorKind(
        400,
        INVALID,
        "The request asks for something that the Responses API knows and this endpoint does not do.",
        "Leave out what `param` names; the message says what to send instead, where there is something.",
    ),
    "context_length_exceeded": ErrorKind(
        400,
        INVALID,
        "The prompt alone does not fit into the model's context.",
        "Send fewer or shorter items.",
    ),
    "unauthorized": ErrorKind(
        401,
        "authentication_error",
        "The credentials are missing or invalid.",
        "Send one valid key as `Authorization: Bearer …`; the message says what is wrong with the one that was sent.",
    ),
    "credits_exhausted": ErrorKind(
        402,
        LIMIT,
        "The organization's credits do not cover the request.",
        "Add credits.",
    ),
    "forbidden": ErrorKind(
        403,
        PERMISSION,
        "The credentials are valid but do not allow this request.",
        "Use a key with the permission that is missing.",
    ),
    "policy_denied": ErrorKind(
        403,
        PERMISSION,
        "A directive forbids the request: a prompt longer than `maxInputTokens`, a model of which every route is "
        "excluded; or something that is stored where zero data retention is required, be it a response or the answer "
        "that an idempotency key stands for.",
        "The message says which directive: shorten the prompt, or take another model. Where nothing may be stored, "
        "send the whole conversation as `input`, without `store` and `previous_response_id`; and another key, to have "
        "the request answered and billed once more.",
    ),
    "egress_denied": ErrorKind(
        403,
        PERMISSION,
        "An image may not be fetched from the given URL.",
        "Send the image as a `data:` URL.",
    ),
    "not_found": ErrorKind(
        404,
        INVALID,
        "There is nothing at this path; or no response of this id is stored: it never was, has expired or was deleted, "
        "or so was one that it continued.",
        "Look at the base URL and the path; send the whole conversation as `input`.",
    ),
    "model_not_available": ErrorKind(
        404,
        INVALID,
        "The model is not served here.",
        "Use one of the models that `GET models` lists.",
    ),
    "method_not_allowed": ErrorKind(
        405,
        INVALID,
        "The path is right and the HTTP method is not.",
        "Use the method that the `Allow` header names.",
    ),
    "response_in_progress": ErrorKind(
        409,
        INVALID,
        "The stored response that is to be continued or listed is still being made, and was waited for ten seconds.",
        "Try again after `Retry-After`.",
        retry_after=2,
    ),
    "idempotency_in_progress": ErrorKind(
        409,
        INVALID,
        "A request with the same idempotency key is being answered; it has been waited for, ten seconds.",
        "Try again after `Retry-After`.",
        retry_after=2,
    ),
    "payload_too_large": ErrorKind(
        413,
        INVALID,
        "The request body, or an image, is larger than the server or the model accepts.",
        "Send less; the message gives the limit in bytes.",
    ),
    "unsupported_media_type": ErrorKind(
        415,
        INVALID,
        "The body is not plain JSON: another content type, or a content encoding.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    "idempotency_mismatch": ErrorKind(
        422,
        INVALID,
        "The idempotency key stands for another request; or for this one, whose answer is not kept, because it was too "
        "large or has been deleted.",
        "Send another key: then the request is answered, and billed.",
    ),
    "rate_limited": ErrorKind(
        429,
        LIMIT,
        "Too many requests, tokens or bytes in the last minute.",
        "Wait as long as `Retry-After` says.",
        retry_after=1,
    ),
    "concurrency_limited": ErrorKind(
        429,
        LIMIT,
        "Too many requests of the organization are in flight.",
        "Wait until one of them has ended.",
        retry_after=1,
    ),
    "quota_exceeded": ErrorKind(
        429,
        LIMIT,
        "A quota is used up.",
        "Wait for the next period, or raise the quota; a retry does not help.",
        should_retry=False,
    ),
    "internal": ErrorKind(
        500,
        SERVER,
        "Something failed inside the server.",
        "Try again; if it stays, report the request id in the message.",
    ),
    "infer_backend_unavailable": ErrorKind(
        503,
        SERVER,
        "The model runtime is starting, cannot be reached, failed or did not answer in time; or its answer does not "
        "fit the format, or lacks the call, that the request demands.",
        "Try again after `Retry-After`. With `x-should-retry: false` instead, the same request would only be answered "
        "as badly again.",
        retry_after=5,
    ),
    "capacity_unavailable": ErrorKind(
        503,
        SERVER,
        "The model runtime, or the node itself, has no room for another request now.",
        "Try again after `Retry-After`.",
        retry_after=1,
    ),
    "node_unavailable": ErrorKind(
        503,
        SERVER,
        "The node is restarting or stopping, or cannot reach its store.",
        "Try again after `Retry-After`.",
        retry_after=5,
    ),
    "deadline_exceeded": ErrorKind(
        504,
        SERVER,
        "The answer was not complete when the time that a request may take was over.",
        "Ask for less, with a lower `max_output_tokens`, or for a stream.",
    ),
    "stream_interrupted": ErrorKind(
        500,
        SERVER,
        "The stream broke after it had started; only ever in its `error` event.",
        "Send the request again; what came before the event is not complete.",
        in_streams=True,
    ),
}


@dataclass(eq=False)
class ApiError(Exception):
    """A request that cannot be served, or an answer that cannot be finished, in the words shown to the client.

    ``code`` is a key of :data:`CODES`; ``message`` is one short sentence that quotes no more of the payload than a
    name; ``param`` is a path such as ``input[0].content[1]``. ``retry_after`` (seconds) replaces the table's where one
    occurrence differs; ``retry`` false says that the same request would only fail again. ``allow`` are the methods that
    are allowed, with 405. ``headers`` (lower-case names) are sent along.
    """

    code: str
    message: str
    param: str | None = None
    retry_after: int | None = None
    retry: bool = True
    allow: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> ErrorKind:
        """The code's row in the table."""
        return CODES[self.code]

    @property
    def status(self) -> int:
        """The HTTP status, 400–599."""
        return self.kind.status

    @property
    def failed_code(self) -> str:
        """The code of ``response.failed``: one of those that OpenAI's response object has."""
        return FAILED_CODES.get(self.kind.type, "server_error")

    def fields(self) -> dict[str, str | None]:
        """The four members of OpenAI's ``error`` object, in OpenAI's order."""
        return {"message": self.message, "type": self.kind.type, "param": self.param, "code": self.code}

    def reply(self, members: Mapping[str, object] | None = None) -> Reply:
        """The plain HTTP error, with headers that advise the client whether and when to try again.

        ``members`` are those of ``error`` where they are more than OpenAI's four.
        """
        return Reply.json({"error": members or self.fields()}, self.status, self._advice(), self.code)

    def _advice(self) -> dict[str, str]:
        headers = dict(self.headers)
        retry = self.retry and self.kind.should_retry
        retry_after = self.kind.retry_after if self.retry_after is None else self.retry_after
        if retry and retry_after is not None:
            headers["retry-after"] = str(retry_after)
        if not retry:
            headers["x-should-retry"] = "false"
        if self.allow is not None:
            headers["allow"] = self.allow
        if self.status == 401:
            # RFC 9110, section 11.6.1.
            headers["www-authenticate"] = CHALLENGE
        return headers
