"""Whom a request is counted for: its end user and its tags, from headers and body, within the bureau's limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces import idempotency
from sidecar.surfaces.attribution import MOST_OF_A_USER, Attribution
from sidecar.surfaces.bureau.native import NativeBureauRequest
from sidecar.surfaces.bureau.unions import BureauRequest
from sidecar.surfaces.idempotency import IDEMPOTENCY_HEADER

USER_HEADER, TAGS_HEADER, SESSION_HEADER = "ib-user", "ib-tags", "ib-session"
CLIENT_ID_HEADER = "x-client-request-id"

MOST_TAGS = 10
MOST_OF_A_SESSION = 128
MOST_OF_A_CLIENT_ID = 512

HEADERS = {
    IDEMPOTENCY_HEADER: idempotency.WORDS,
    USER_HEADER: f"Your end user, at most {MOST_OF_A_USER} characters; wins over `user` and `safety_identifier`.",
    TAGS_HEADER: f"Tags, separated by commas; at most {MOST_TAGS} together with `ib.tags`.",
    SESSION_HEADER: f"The conversation that this turn belongs to, at most {MOST_OF_A_SESSION} characters.",
    CLIENT_ID_HEADER: f"Your own id of the request, at most {MOST_OF_A_CLIENT_ID} printable ASCII characters.",
}

_TAG = re.compile(r"[A-Za-z0-9._:/=-]{1,64}")
_CLIENT_ID = re.compile(rf"[ -~]{{0,{MOST_OF_A_CLIENT_ID}}}")


def attribution(headers: Mapping[str, str], request: ResponsesRequest) -> Attribution:
    """The end user, the tags, the session and the client's own id of a request.

    Raises:
        ApiError: ``invalid_request`` that names the header or the member which is too long or not well-formed.
    """
    assert isinstance(request, BureauRequest | NativeBureauRequest)
    extension = request.ib
    session = _text(headers, SESSION_HEADER)
    _check_label(session, MOST_OF_A_SESSION, SESSION_HEADER)
    _check_label(extension.session if extension else None, MOST_OF_A_SESSION, "ib.session")
    if not _CLIENT_ID.fullmatch(headers.get(CLIENT_ID_HEADER, "")):
        message = f"{CLIENT_ID_HEADER} has at most {MOST_OF_A_CLIENT_ID} printable ASCII characters."
        raise ApiError("invalid_request", message, CLIENT_ID_HEADER)
    named = {
        USER_HEADER: _text(headers, USER_HEADER),
        "user": request.user,
        "safety_identifier": request.safety_identifier,
    }
    for member, name in named.items():
        _check_label(name, MOST_OF_A_USER, member)
    end_user = next((name for name in named.values() if name), None)
    sent = [tag.strip() for tag in headers.get(TAGS_HEADER, "").split(",")]
    tags = _tags([tag for tag in sent if tag], TAGS_HEADER) + _tags(extension.tags if extension else (), "ib.tags")
    unlike = tuple(dict.fromkeys(tags))
    if len(unlike) > MOST_TAGS:
        message = f"A request has at most {MOST_TAGS} tags; {TAGS_HEADER} and ib.tags have {len(unlike)} together."
        raise ApiError("invalid_request", message, "ib.tags" if extension and extension.tags else TAGS_HEADER)
    session = session or (extension.session if extension else None)
    return Attribution(end_user, unlike, session or None, headers.get(CLIENT_ID_HEADER) or None)


def _text(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value, which is UTF-8 as the body's is: one end user is not to become two.

    Raises:
        ApiError: it is not.
    """
    try:
        # Headers are bytes, of which each is read as a character.
        return headers[name].encode("latin-1").decode() if name in headers else None
    except UnicodeError:
        raise ApiError("invalid_request", f"{name} is not UTF-8.", name) from None


def _check_label(text: str | None, most: int, place: str) -> None:
    if text and (len(text) > most or not text.isprintable()):
        raise ApiError("invalid_request", f"{place} has at most {most} printable characters.", place)


def _tags(tags: Iterable[str], place: str) -> list[str]:
    tags = list(tags)
    if not all(_TAG.fullmatch(tag) for tag in tags):
        message = f"A tag in {place} has 1 to 64 letters, digits and the characters . _ : / = -"
        raise ApiError("invalid_request", message, place)
    return tags
