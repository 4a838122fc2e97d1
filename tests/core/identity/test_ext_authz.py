"""What Envoy is told about a request: let in on somebody's behalf, or answered in the surface's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse

from sidecar.config.identity import TrustedIdentity
from sidecar.identity.ext_authz import AuthorizationService
from sidecar.identity.identity import INFERENCE, Identity
from sidecar.identity.secret import Kind, Secret, mint
from sidecar.identity.trusted import Trusted
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES

KEY, READER, PROJECT_KEY = mint(Kind.KEY), mint(Kind.KEY), mint(Kind.PROJECT)
PATH = "/v1/infer/responses"


class Holders:
    """An authenticator that knows three keys."""

    def __init__(self) -> None:
        self.holders = {
            KEY: Identity(Caller("org_1", "key_1", "alice"), INFERENCE),
            READER: Identity(Caller("org_1", "key_2"), frozenset({"infer:read"})),
            PROJECT_KEY: Identity(Caller("org_1", "prk_1", "", "support", "test"), INFERENCE),
        }

    async def identify(self, secret: Secret) -> Identity:
        if secret not in self.holders:
            raise ApiError("unauthorized", "The credential is unknown.")
        return self.holders[secret]


def request(*headers: tuple[str, str], method: str = "POST", path: str = PATH, **extensions: str) -> CheckRequest:
    asked = CheckRequest()
    http = asked.attributes.request.http
    http.method, http.path, http.host = method, path, "node"
    for name, value in (("x-request-id", "r-1"), *headers):
        http.header_map.headers.add(key=name, raw_value=value.encode("latin-1"))
    asked.attributes.context_extensions.update({"surface": "node", **extensions})
    return asked


def bearer(secret: Secret) -> tuple[str, str]:
    return ("authorization", f"Bearer {secret.text}")


async def check(asked: CheckRequest, trusted: Trusted | None = None) -> CheckResponse:
    service = AuthorizationService(SURFACES, Holders(), trusted)  # type: ignore[arg-type]
    return await service.Check(asked, None)


def told(response: CheckResponse) -> dict[str, str]:
    assert response.status.code == 0
    assert {option.append_action for option in response.ok_response.headers} == {2}
    return {option.header.key: option.header.value for option in response.ok_response.headers}


def error(response: CheckResponse) -> tuple[int, dict[str, Any], dict[str, str]]:
    assert response.status.code != 0
    denied = response.denied_response
    headers = {option.header.key: option.header.value for option in denied.headers}
    return denied.status.code, json.loads(denied.body)["error"], headers


async def test_who_may_goes_on_and_nothing_secret_goes_with_it() -> None:
    response = await check(request(bearer(KEY)))
    assert told(response) == {
        "x-responses-organization": "org_1",
        "x-responses-key": "key_1",
        "x-responses-user": "alice",
    }
    assert set(response.ok_response.headers_to_remove) == {
        "authorization",
        "cookie",
        "x-responses-project",
        "x-responses-environment",
    }


async def test_what_is_not_known_of_a_client_it_cannot_say_itself() -> None:
    response = await check(request(bearer(READER), ("x-responses-user", "root"), method="GET", path="/v1/infer/models"))
    assert told(response) == {"x-responses-organization": "org_1", "x-responses-key": "key_2"}
    assert "x-responses-user" in response.ok_response.headers_to_remove


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ([], 401, "unauthorized"),
        ([bearer(mint(Kind.KEY))], 401, "unauthorized"),
        ([bearer(Secret(KEY.text[:-1]))], 401, "unauthorized"),
        ([bearer(KEY), bearer(KEY)], 401, "unauthorized"),
        ([bearer(READER)], 403, "forbidden"),
    ],
)
async def test_a_refusal_has_the_shape_of_the_surface(headers: list[tuple[str, str]], status: int, code: str) -> None:
    found, members, sent = error(await check(request(*headers)))
    assert (found, members["code"], members["param"]) == (status, code, None)
    assert list(members) == ["message", "type", "param", "code"]
    assert sent["content-type"] == "application/json"
    assert sent.get("www-authenticate") == ("Bearer" if status == 401 else None)


async def test_the_scope_that_is_missing_is_named() -> None:
    _, members, _ = error(await check(request(bearer(READER))))
    assert members["message"] == "The scope infer:run is needed, which these credentials do not have."


@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("GET", "/v1/nothing"), ("GET", "/v1/infer/models/x?a=b")])
async def test_what_is_not_there_is_told_further_on(method: str, path: str) -> None:
    assert told(await check(request(bearer(READER), method=method, path=path)))


async def test_a_key_in_the_query_is_none() -> None:
    status, members, _ = error(await check(request(path=f"{PATH}?api_key={KEY.text}&key={KEY.text}")))
    assert (status, members["code"]) == (401, "unauthorized")
    assert KEY.text not in members["message"]


HEADERS = Trusted(TrustedIdentity.model_validate({"organization": {"header": "x-org"}}))


async def test_a_trusted_listener_says_who_a_request_is_from() -> None:
    response = await check(request(("x-org", "acme"), trusted="true"), HEADERS)
    assert told(response) == {"x-responses-organization": "acme"}
    assert "x-org" in response.ok_response.headers_to_remove


async def test_what_is_trusted_elsewhere_is_nothing_on_another_listener() -> None:
    assert error(await check(request(("x-org", "acme")), HEADERS))[0] == 401
    response = await check(request(("x-org", "other"), bearer(KEY)), HEADERS)
    assert told(response)["x-responses-organization"] == "org_1"
    assert "x-org" in response.ok_response.headers_to_remove


async def test_a_key_is_nothing_on_a_trusted_listener() -> None:
    assert error(await check(request(bearer(KEY), trusted="true"), HEADERS))[0] == 401


async def test_a_listener_that_is_marked_and_not_configured_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    assert error(await check(request(bearer(KEY), trusted="true")))[0] == 403
    assert "identity.trusted is not configured" in caplog.text


@pytest.mark.parametrize(
    "header", [bearer(PROJECT_KEY), ("x-api-key", PROJECT_KEY.text)], ids=["authorization", "x-api-key"]
)
async def test_a_key_of_a_project_is_taken_on_its_surface(header: tuple[str, str]) -> None:
    response = await check(request(header, path="/v1/responses", surface="bureau"))
    assert told(response) == {
        "x-responses-organization": "org_1",
        "x-responses-key": "prk_1",
        "x-responses-project": "support",
        "x-responses-environment": "test",
    }
    assert {"authorization", "cookie", "x-api-key"} <= set(response.ok_response.headers_to_remove)


@pytest.mark.parametrize(("surface", "key"), [("bureau", KEY), ("node", PROJECT_KEY)])
async def test_a_key_is_taken_on_its_own_surface_only(surface: str, key: Secret) -> None:
    status, members, _ = error(await check(request(bearer(key), surface=surface)))
    assert (status, members["code"]) == (401, "unauthorized")
    assert members.get("request_id") == ("r-1" if surface == "bureau" else None)


async def test_a_surface_that_is_unknown_is_the_route_s_mistake() -> None:
    asked = request(bearer(KEY))
    asked.attributes.context_extensions["surface"] = "none"
    with pytest.raises(KeyError):
        await check(asked)
