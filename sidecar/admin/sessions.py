"""Sessions of a console's users: begun after a login, ended by a logout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection

from sidecar.admin.route import Route, Tools
from sidecar.identity import sessions
from sidecar.identity.organizations import OrganizationError
from sidecar.identity.records import MICROSECONDS, Record, UnknownCredential
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.responses.reply import Reply

_PAGE = 100


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("printable characters are needed")
    return text


class _Wanted(BaseModel):
    """The body of a request for a session; ``ttl`` is in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True)

    organization: Annotated[str, Field(min_length=1, max_length=128)]
    user: Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_printable)]
    ttl: Annotated[int, Field(ge=sessions.FEWEST_SECONDS, le=sessions.MOST_SECONDS)] = round(sessions.SECONDS)


class _Calls:
    """The operation of the store whose items are what is to be done."""

    def perform(self, connection: Connection, items: Sequence[Callable[[Connection], Any]]) -> Sequence[Any]:
        """Do it. What one raises undoes only that one: the store then does each alone."""
        return [item(connection) for item in items]


_CALLS = _Calls()


async def begin(tools: Tools, request: web.Request) -> Reply:
    """Make a session; the answer alone has its value, ready for ``Set-Cookie``."""
    wanted = await _wanted(request)
    call = partial(sessions.begin, organization=wanted.organization, user=wanted.user, seconds=float(wanted.ttl))
    try:
        secret, record = await tools.store.run(_CALLS, call)
    except OrganizationError as error:
        raise ApiError("not_found", str(error), "organization") from None
    made = {"value": secret.text, "set_cookie": sessions.cookie(secret, float(wanted.ttl))}
    return Reply.json({**_session(record), **made}, 201, {"cache-control": "no-store"})


async def list_all(tools: Tools, request: web.Request) -> Reply:
    """The sessions that have not ended, the oldest first, some at a time: ``after`` is the last id that is known."""
    query = request.query
    page = partial(
        sessions.listed, organization=query.get("organization"), after=query.get("after", ""), most=_PAGE + 1
    )
    try:
        records = await tools.store.read(page)
    except OrganizationError as error:
        raise ApiError("not_found", str(error), "organization") from None
    return Reply.json({"data": [_session(record) for record in records[:_PAGE]], "has_more": len(records) > _PAGE})


async def end(tools: Tools, request: web.Request) -> Reply:
    """End a session; the answer has the ``Set-Cookie`` that takes it away from a browser."""
    try:
        record = await tools.store.run(_CALLS, partial(sessions.end, id_=request.match_info["id"]))
    except UnknownCredential as error:
        raise ApiError("not_found", str(error)) from None
    return Reply.json({**_session(record), "set_cookie": sessions.no_cookie()})


ROUTES = (
    Route("POST", "/admin/sessions", begin),
    Route("GET", "/admin/sessions", list_all),
    Route("DELETE", "/admin/sessions/{id}", end),
)


async def _wanted(request: web.Request) -> _Wanted:
    try:
        return _Wanted.model_validate_json(await request.read())
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        param = ".".join(map(str, fault["loc"])) or None
        raise ApiError("invalid_request", f"{param or 'The body'}: {fault['msg']}", param) from None


def _session(record: Record) -> Json:
    """A session as it is shown: times are in seconds since the epoch."""
    return {
        "id": record.id,
        "organization": record.organization,
        "user": record.user,
        "created_at": record.created_at // MICROSECONDS,
        "expires_at": None if record.expires_at is None else record.expires_at // MICROSECONDS,
        "ended_at": None if record.revoked_at is None else record.revoked_at // MICROSECONDS,
    }
