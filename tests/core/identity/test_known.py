"""A credential counts while it is known, not revoked, not expired, and its organization is not disabled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.identity.identity import INFERENCE, Identity, parse_scopes
from sidecar.identity.known import Known, admit
from sidecar.identity.secret import Kind, mint
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError

DIGEST = mint(Kind.KEY).digest
IDENTITY = Identity(Caller("org_1", "key_1"), INFERENCE)
GOOD = Known(Kind.KEY, DIGEST, IDENTITY, expires_at=None, revoked=False, replaced=False, disabled=False)


@pytest.mark.parametrize(
    "known", [GOOD, replace(GOOD, expires_at=100.1), replace(GOOD, expires_at=100.1, replaced=True)]
)
def test_one_that_counts(known: Known) -> None:
    assert admit(DIGEST, known, at=100.0) is IDENTITY


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (None, "The credential is unknown."),
        (replace(GOOD, digest=mint(Kind.KEY).digest), "The credential is unknown."),
        (replace(GOOD, revoked=True), "The API key was revoked."),
        (replace(GOOD, kind=Kind.SESSION, revoked=True), "The session was revoked."),
        (replace(GOOD, expires_at=100.0), "The API key has expired."),
        (replace(GOOD, kind=Kind.TOKEN, expires_at=99.0), "The API token has expired."),
        (replace(GOOD, expires_at=100.0, replaced=True), "The API key has been replaced by another."),
        (replace(GOOD, revoked=True, replaced=True), "The API key was revoked."),
        (replace(GOOD, disabled=True), "The organization of the API key is disabled."),
        (replace(GOOD, revoked=True, expires_at=1.0, disabled=True), "The API key was revoked."),
    ],
)
def test_one_that_does_not_count(known: Known | None, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        admit(DIGEST, known, at=100.0)
    assert (refused.value.code, refused.value.message) == ("unauthorized", message)


def test_a_scope_that_is_missing_is_named() -> None:
    IDENTITY.require("infer:run")
    with pytest.raises(ApiError) as refused:
        IDENTITY.require("usage:read")
    assert refused.value.code == "forbidden"
    assert "usage:read" in refused.value.message


@pytest.mark.parametrize(("text", "words"), [("", "at least one scope"), ("infer:run root", "there is no scope root")])
def test_scopes_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_scopes(text)


def test_scopes_are_separated_by_spaces() -> None:
    assert parse_scopes(" infer:run  admin ") == {"infer:run", "admin"}
