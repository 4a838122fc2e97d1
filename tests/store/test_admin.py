"""The admin interface over real HTTP: sessions for those whose key allows it, and errors in our own form."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sidecar.admin import sessions
from sidecar.admin.app import MOST_BYTES, make_app, start_admin
from sidecar.admin.route import Route, Tools
from sidecar.config.load import ConfigError
from sidecar.identity import sessions as sessions_of_users
from sidecar.identity.authenticator import find_known
from sidecar.identity.secret import Secret
from sidecar.responses.reply import Reply
from sidecar.store import Store, StoreUnavailable, connect
from stack.net import free_port
from tests.store.listeners import authenticator, key, organization

PATH = "/admin/sessions"
WANTED = {"organization": "acme", "user": "alice"}


class Admin:
    """A running interface, asked with a key that may do everything."""

    def __init__(self, http: aiohttp.ClientSession, port: int, secret: str) -> None:
        self.http = http
        self.url = f"http://127.0.0.1:{port}"
        self.secret = secret

    async def ask(
        self, method: str, path: str = PATH, body: object = None, secret: str | None = "", status: int = 200
    ) -> Any:
        """The answer, which must have ``status``."""
        headers = {} if secret is None else {"authorization": f"Bearer {secret or self.secret}"}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        async with self.http.request(method, self.url + path, data=data, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            assert answer.content_type == "application/json"
            self.headers = answer.headers
            return await answer.json()

    async def error(self, method: str, path: str = PATH, body: object = None, **expected: Any) -> tuple[str, str]:
        """The code and the message of a refusal."""
        answer = await self.ask(method, path, body, **expected)
        assert answer.keys() == {"error"}
        assert answer["error"].keys() == {"message", "type", "param", "code"}
        return answer["error"]["code"], answer["error"]["message"]


@pytest.fixture
def acme(store_url: str) -> str:
    return organization(store_url, "acme")


@pytest.fixture
async def admin(store: Store, store_url: str, acme: str) -> AsyncIterator[Admin]:
    port = free_port()
    tools = Tools(store, authenticator(store))
    runner = await start_admin(make_app(tools), f"127.0.0.1:{port}")
    async with aiohttp.ClientSession() as http:
        yield Admin(http, port, key(store_url, acme, "admin")[0])
    await runner.cleanup()


def known(url: str, value: str) -> Any:
    digest = Secret(value).digest
    with connect(url) as connection:
        return find_known(connection, [digest], began=time.monotonic())[digest]


async def test_a_session_is_made_with_its_cookie(admin: Admin, store_url: str, acme: str) -> None:
    made = await admin.ask("POST", body={**WANTED, "ttl": 600}, status=201)
    assert admin.headers["cache-control"] == "no-store"
    assert (made["organization"], made["user"], made["ended_at"]) == (acme, "alice", None)
    assert made["expires_at"] - made["created_at"] == 600
    (cookie,) = SimpleCookie(made["set_cookie"]).values()
    assert (cookie.value, cookie["max-age"], cookie["samesite"]) == (made["value"], "600", "Lax")
    assert cookie["secure"]
    assert cookie["httponly"]
    identity = known(store_url, made["value"]).identity
    assert (identity.caller.user, identity.caller.organization) == ("alice", acme)
    assert "admin" not in identity.scopes


async def test_an_ended_session_counts_no_more(admin: Admin, store_url: str) -> None:
    made = await admin.ask("POST", body=WANTED, status=201)
    ended = await admin.ask("DELETE", f"{PATH}/{made['id']}")
    assert ended["ended_at"] is not None
    assert "Max-Age=0" in ended["set_cookie"]
    assert known(store_url, made["value"]).revoked
    again = await admin.ask("DELETE", f"{PATH}/{made['id']}")
    assert again["ended_at"] == ended["ended_at"]


async def test_those_that_last_are_listed_without_their_values(
    admin: Admin, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_PAGE", 2)
    organization(store_url, "other")
    made = [await admin.ask("POST", body={**WANTED, "user": f"user-{index}"}, status=201) for index in range(4)]
    other = await admin.ask("POST", body={**WANTED, "organization": "other"}, status=201)
    await admin.ask("DELETE", f"{PATH}/{made[1]['id']}")
    first = await admin.ask("GET")
    assert [session["user"] for session in first["data"]] == ["user-0", "user-2"]
    assert first["has_more"]
    assert first["data"][0].keys() == {"id", "organization", "user", "created_at", "expires_at", "ended_at"}
    rest = await admin.ask("GET", f"{PATH}?after={made[2]['id']}")
    assert ([session["id"] for session in rest["data"]], rest["has_more"]) == ([made[3]["id"], other["id"]], False)
    for named in ("other", other["organization"]):
        found = await admin.ask("GET", f"{PATH}?organization={named}")
        assert [session["id"] for session in found["data"]] == [other["id"]]


async def test_only_keys_with_the_scope_may_ask(admin: Admin, store_url: str, acme: str) -> None:
    assert (await admin.error("GET", secret=None, status=401))[0] == "unauthorized"
    assert admin.headers["www-authenticate"] == "Bearer"
    assert (await admin.error("GET", secret=f"{admin.secret[:-1]}!", status=401))[0] == "unauthorized"
    lesser, _ = key(store_url, acme, "infer:run", "usage:read")
    code, message = await admin.error("POST", body=WANTED, secret=lesser, status=403)
    assert (code, "admin" in message) == ("forbidden", True)
    value = (await admin.ask("POST", body=WANTED, status=201))["value"]
    cookie = {"cookie": f"__Host-b3os_session={value}"}
    async with admin.http.get(admin.url + PATH, headers=cookie) as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        ({"organization": "acme"}, "user"),
        ({**WANTED, "user": ""}, "user"),
        ({**WANTED, "ttl": sessions_of_users.FEWEST_SECONDS - 1}, "ttl"),
        ({**WANTED, "ttl": sessions_of_users.MOST_SECONDS + 1}, "ttl"),
        ({**WANTED, "ttl": "600"}, "ttl"),
        ({**WANTED, "scopes": ["admin"]}, "scopes"),
    ],
)
async def test_a_wrong_body_is_refused_without_being_quoted(admin: Admin, body: object, param: str | None) -> None:
    answer = await admin.ask("POST", body=body, status=400)
    assert (answer["error"]["code"], answer["error"]["param"]) == ("invalid_request", param)


async def test_what_is_not_there(admin: Admin) -> None:
    assert (await admin.error("GET", "/admin", status=404))[0] == "not_found"
    assert (await admin.error("DELETE", f"{PATH}/ses_unknown", status=404))[0] == "not_found"
    assert (await admin.error("POST", body={**WANTED, "organization": "nobody"}, status=404))[0] == "not_found"
    for named in ("nobody", ""):
        refused = await admin.ask("GET", f"{PATH}?organization={named}", status=404)
        assert (refused["error"]["code"], refused["error"]["param"]) == ("not_found", "organization")
    assert (await admin.error("PUT", status=405))[0] == "method_not_allowed"
    assert admin.headers["allow"] == "GET, POST"
    assert (await admin.error("POST", body=b" " * (MOST_BYTES + 1), status=413))[0] == "payload_too_large"


async def test_a_fault_of_ours_and_a_store_that_is_down(
    store: Store, store_url: str, acme: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_tools: Tools, _request: web.Request) -> Reply:
        raise ZeroDivisionError

    async def unavailable(_tools: Tools, _request: web.Request) -> Reply:
        raise StoreUnavailable("postgresql://secret")

    port = free_port()
    routes = (Route("GET", "/fail", fail), Route("GET", "/down", unavailable))
    runner = await start_admin(make_app(Tools(store, authenticator(store)), routes), f"127.0.0.1:{port}")
    async with aiohttp.ClientSession() as http:
        admin = Admin(http, port, key(store_url, acme, "admin")[0])
        assert (await admin.error("GET", "/fail", status=500))[0] == "internal"
        code, message = await admin.error("GET", "/down", status=503)
        assert (code, "secret" in message) == ("node_unavailable", False)
    await runner.cleanup()


async def test_nothing_secret_is_logged(admin: Admin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = await admin.ask("POST", body=WANTED, status=201)
    await admin.ask("GET")
    await admin.ask("POST", body=b"{", status=400)
    assert made["value"] not in caplog.text
    assert admin.secret not in caplog.text


async def test_the_workers_of_a_node_share_the_port(store: Store) -> None:
    address = f"127.0.0.1:{free_port()}"
    tools = Tools(store, authenticator(store))
    runners = [await start_admin(make_app(tools), address) for _ in range(2)]
    for runner in runners:
        await runner.cleanup()


async def test_a_port_that_cannot_be_had_is_told_with_the_key(store: Store) -> None:
    with pytest.raises(ConfigError, match=r"^admin\.address: "):
        await start_admin(make_app(Tools(store, authenticator(store))), "192.0.2.1:9000")
