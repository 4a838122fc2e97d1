"""Exactly one credential, whole, in a header or in the session's cookie; from this site where it is a cookie."""

from __future__ import annotations

import pytest

from sidecar.identity.presented import Headers, presented
from sidecar.identity.secret import Kind, Secret, mint
from sidecar.responses.errors import ApiError
from sidecar.surfaces.credentials import Credentials

KEY, TOKEN, SESSION = mint(Kind.KEY), mint(Kind.TOKEN), mint(Kind.SESSION)
HOST = "api.example.com"
COOKIE = f"__Host-b3os_session={SESSION.text}"
CHECKSUM = "API key checksum does not match; check that the whole key was copied"
TWO = "More than one credential was sent; send exactly one."
NONE = "No API key was sent; send it as Authorization: Bearer …"
NO_KEY = "Authorization has no API key; send it as Authorization: Bearer …"
FOREIGN = "This is no API key of this service: they start with b3os_sk_ or b3os_pat_"
DAMAGED = "The session's cookie is damaged; log in again"
OTHER_SITE = "A session's cookie is taken from pages of this site only."


def bearer(text: str) -> Headers:
    return {"authorization": [f"Bearer {text}"]}


def cookie(**more: str) -> Headers:
    return {"cookie": [COOKIE], **{name.replace("_", "-"): [value] for name, value in more.items()}}


TAKEN: dict[str, tuple[Headers, Secret]] = {
    "a key": (bearer(KEY.text), KEY),
    "a token": (bearer(TOKEN.text), TOKEN),
    "lower case": ({"authorization": [f"bearer {KEY.text}"]}, KEY),
    "upper case": ({"authorization": [f"BEARER {KEY.text}"]}, KEY),
    "more spaces": ({"authorization": [f" Bearer   {KEY.text} "]}, KEY),
    "a session": ({"cookie": [COOKIE]}, SESSION),
    "a session among cookies": ({"cookie": [f"theme=dark; {COOKIE};x=y"]}, SESSION),
    "a session in a second line": ({"cookie": ["theme=dark", COOKIE]}, SESSION),
    "a key beside another cookie": ({**bearer(KEY.text), "cookie": ["theme=dark"]}, KEY),
    "a key from another site": ({**bearer(KEY.text), "sec-fetch-site": ["cross-site"], "origin": ["null"]}, KEY),
    "a session from this site": (cookie(sec_fetch_site="same-origin", origin=f"https://{HOST}"), SESSION),
    "a session by the address bar": (cookie(sec_fetch_site="none"), SESSION),
    "a session from this origin": (cookie(origin=f"https://{HOST}"), SESSION),
    "an origin with its port": (cookie(origin=f"https://{HOST}:443"), SESSION),
    "an origin in capitals": (cookie(origin=f"https://{HOST.upper()}"), SESSION),
}


@pytest.mark.parametrize(("headers", "secret"), TAKEN.values(), ids=TAKEN)
def test_what_is_taken(headers: Headers, secret: Secret) -> None:
    assert presented(headers, HOST) == secret


REFUSED: dict[str, tuple[Headers, str, str]] = {
    "nothing": ({}, "unauthorized", NONE),
    "an empty header": ({"authorization": [""]}, "unauthorized", NONE),
    "another cookie": ({"cookie": [f"session={SESSION.text}"]}, "unauthorized", NONE),
    "no scheme": ({"authorization": [KEY.text]}, "unauthorized", NO_KEY),
    "another scheme": ({"authorization": [f"Basic {KEY.text}"]}, "unauthorized", NO_KEY),
    "a scheme alone": ({"authorization": ["Bearer"]}, "unauthorized", NO_KEY),
    "a scheme and spaces": ({"authorization": ["Bearer   "]}, "unauthorized", NO_KEY),
    "another service's key": (bearer("sk-proj-abc"), "unauthorized", FOREIGN),
    "a session as a key": (bearer(SESSION.text), "unauthorized", FOREIGN),
    "a truncated key": (bearer(KEY.text[:-1]), "unauthorized", CHECKSUM),
    "a key with a tail": (bearer(KEY.text + "x"), "unauthorized", CHECKSUM),
    "a key and a word": (bearer(KEY.text + " x"), "unauthorized", CHECKSUM),
    "a key in quotes": (bearer(f'"{KEY.text}"'), "unauthorized", FOREIGN),
    "two headers": ({"authorization": [f"Bearer {KEY.text}"] * 2}, "unauthorized", TWO),
    "two headers, one good": ({"authorization": [f"Bearer {KEY.text}", "Basic x"]}, "unauthorized", TWO),
    "two headers, joined": ({"authorization": [f"Bearer {KEY.text},Bearer {KEY.text}"]}, "unauthorized", TWO),
    "a key and a session": ({**bearer(KEY.text), "cookie": [COOKIE]}, "unauthorized", TWO),
    "two sessions": ({"cookie": [f"{COOKIE}; {COOKIE}"]}, "unauthorized", TWO),
    "two sessions in two lines": ({"cookie": [COOKIE, COOKIE]}, "unauthorized", TWO),
    "a key as a session": ({"cookie": [f"__Host-b3os_session={KEY.text}"]}, "unauthorized", DAMAGED),
    "a truncated session": ({"cookie": [COOKIE[:-1]]}, "unauthorized", DAMAGED),
    "an empty session": ({"cookie": ["__Host-b3os_session="]}, "unauthorized", DAMAGED),
    "another site": (cookie(sec_fetch_site="cross-site"), "forbidden", OTHER_SITE),
    "a sibling of this site": (cookie(sec_fetch_site="same-site"), "forbidden", OTHER_SITE),
    "two sites": ({"cookie": [COOKIE], "sec-fetch-site": ["same-origin", "cross-site"]}, "forbidden", OTHER_SITE),
    "another site with this origin": (
        cookie(sec_fetch_site="cross-site", origin=f"https://{HOST}"),
        "forbidden",
        OTHER_SITE,
    ),
    "another origin": (cookie(origin="https://evil.example"), "forbidden", OTHER_SITE),
    "an origin that begins alike": (cookie(origin=f"https://{HOST}.evil.example"), "forbidden", OTHER_SITE),
    "another port": (cookie(origin=f"https://{HOST}:8443"), "forbidden", OTHER_SITE),
    "no origin that can be told": (cookie(origin="null"), "forbidden", OTHER_SITE),
    "an origin of another kind": (cookie(origin=f"file://{HOST}"), "forbidden", OTHER_SITE),
    "an origin that is none": (cookie(origin="https://[::1"), "forbidden", OTHER_SITE),
}


@pytest.mark.parametrize(("headers", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(headers: Headers, code: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        presented(headers, HOST)
    assert (refused.value.code, refused.value.message, refused.value.param) == (code, message, None)


def test_a_host_with_a_port_has_its_own_origin() -> None:
    assert presented(cookie(origin="http://127.0.0.1:8080"), "127.0.0.1:8080") == SESSION
    with pytest.raises(ApiError):
        presented(cookie(origin="http://127.0.0.1"), "127.0.0.1:8080")


@pytest.mark.parametrize("name", REFUSED)
def test_no_refusal_says_what_was_sent(name: str) -> None:
    with pytest.raises(ApiError) as refused:
        presented(REFUSED[name][0], HOST)
    assert not any(secret.text[9:20] in str(refused.value) for secret in (KEY, TOKEN, SESSION))


PROJECT_KEY = mint(Kind.PROJECT)
PROJECT_KEYS = Credentials(keys=("project",), key_header="x-api-key", sessions=False)


@pytest.mark.parametrize(
    "headers",
    [
        bearer(PROJECT_KEY.text),
        {"x-api-key": [PROJECT_KEY.text]},
        {"x-api-key": [PROJECT_KEY.text], "cookie": [COOKIE]},
    ],
    ids=["bearer", "x-api-key", "beside a cookie that does not count"],
)
def test_a_surface_may_take_other_keys_in_another_header(headers: Headers) -> None:
    assert presented(headers, HOST, PROJECT_KEYS) == PROJECT_KEY


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (bearer(KEY.text), "This is no API key of this service: they start with ib_live_"),
        ({"x-api-key": [KEY.text]}, "This is no API key of this service: they start with ib_live_"),
        ({"x-api-key": [PROJECT_KEY.text[:-1]]}, CHECKSUM),
        ({**bearer(PROJECT_KEY.text), "x-api-key": [PROJECT_KEY.text]}, TWO),
        ({"cookie": [COOKIE]}, NONE),
    ],
    ids=["another kind", "another kind in x-api-key", "truncated", "two", "a session"],
)
def test_and_refuse_those_of_others(headers: Headers, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        presented(headers, HOST, PROJECT_KEYS)
    assert (caught.value.code, caught.value.message) == ("unauthorized", message)


def test_elsewhere_that_header_is_not_looked_at() -> None:
    assert presented({**bearer(KEY.text), "x-api-key": ["anything"]}, HOST) == KEY
