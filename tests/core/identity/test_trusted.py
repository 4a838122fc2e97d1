"""Identities that an operator's own authentication has found: where they stand is configured, all else is refused."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from sidecar.config.identity import TrustedIdentity
from sidecar.identity.identity import INFERENCE, Identity
from sidecar.identity.presented import Headers
from sidecar.identity.trusted import Trusted, claims_of, is_marked
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError


def trusted(**sources: dict[str, str]) -> Trusted:
    return Trusted(TrustedIdentity.model_validate(sources))


def struct(**claims: Any) -> Struct:
    return ParseDict(claims, Struct())


CLAIMS = trusted(organization={"claim": "org"}, key={"claim": "sid"}, user={"claim": "sub"}, scopes={"claim": "scope"})
HEADERS = trusted(organization={"header": "x-org"}, user={"header": "x-user"})


@pytest.mark.parametrize(
    ("by", "headers", "claims", "identity"),
    [
        (CLAIMS, {}, {"org": "acme"}, Identity(Caller("acme"), frozenset())),
        (
            CLAIMS,
            {},
            {"org": "acme", "sid": "s1", "sub": "alice", "scope": "infer:run openid"},
            Identity(Caller("acme", "s1", "alice"), frozenset({"infer:run"})),
        ),
        (
            CLAIMS,
            {},
            {"org": 42, "scope": ["infer:run", "admin"]},
            Identity(Caller("42"), frozenset({"infer:run", "admin"})),
        ),
        (CLAIMS, {"x-org": ["other"]}, {"org": ["acme"]}, Identity(Caller("acme"), frozenset())),
        (HEADERS, {"x-org": ["acme"]}, {"org": "other"}, Identity(Caller("acme"), INFERENCE)),
        (HEADERS, {"x-org": ["acme"], "x-user": ["a@b.c"]}, {}, Identity(Caller("acme", "", "a@b.c"), INFERENCE)),
    ],
)
def test_what_is_told_is_taken(by: Trusted, headers: Headers, claims: dict[str, Any], identity: Identity) -> None:
    assert by.identity(headers, struct(**claims)) == identity


@pytest.mark.parametrize(
    ("by", "headers", "claims", "words"),
    [
        (CLAIMS, {"x-org": ["acme"]}, {}, "found no organization"),
        (CLAIMS, {}, {"org": None}, "found no organization"),
        (CLAIMS, {}, {"org": True}, "found no organization"),
        (CLAIMS, {}, {"org": {"id": "acme"}}, "found no organization"),
        (CLAIMS, {}, {"org": ["a", "b"]}, "The organization that"),
        (CLAIMS, {}, {"org": "a\r\nb"}, "The organization that"),
        (CLAIMS, {}, {"org": "a" * 129}, "The organization that"),
        (CLAIMS, {}, {"org": "acme", "sub": "Jürgen"}, "The user that"),
        (HEADERS, {}, {"org": "acme"}, "found no organization"),
        (HEADERS, {"x-org": [""]}, {}, "found no organization"),
        (HEADERS, {"x-org": ["acme", "other"]}, {}, "The organization that"),
        (HEADERS, {"x-org": ["acme, other"]}, {}, "The organization that"),
    ],
)
def test_what_is_not_told_or_cannot_be_is_refused(
    by: Trusted, headers: Headers, claims: dict[str, Any], words: str
) -> None:
    with pytest.raises(ApiError, match=words) as refused:
        by.identity(headers, struct(**claims))
    assert refused.value.code == "unauthorized"


def test_headers_that_are_read_are_known() -> None:
    assert HEADERS.headers == ["x-org", "x-user"]
    assert CLAIMS.headers == []


def test_claims_are_those_of_the_filter_that_verifies_them() -> None:
    metadata = {"envoy.filters.http.jwt_authn": struct(claims={"org": "acme"}), "other": struct(claims={"org": "x"})}
    assert claims_of(metadata) == struct(org="acme")
    assert claims_of({}) == Struct()


@pytest.mark.parametrize(
    ("extensions", "marked"), [({"trusted": "true"}, True), ({"trusted": "false"}, False), ({}, False)]
)
def test_only_a_route_that_says_so_is_trusted(extensions: dict[str, str], marked: bool) -> None:
    assert is_marked(extensions) is marked
