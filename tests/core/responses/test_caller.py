"""On whose behalf a request is, told in headers and read from them."""

from __future__ import annotations

import pytest

from sidecar.responses.caller import CALLER_HEADERS, Caller


@pytest.mark.parametrize(
    "caller", [Caller("org_1", "key_1", "alice"), Caller("org_1", "prk_1", "", "p", "e"), Caller("org_1"), Caller()]
)
def test_what_headers_tell_is_read_again(caller: Caller) -> None:
    assert Caller.of({":path": "/", **caller.headers()}) == caller


def test_what_is_not_known_has_no_header() -> None:
    assert Caller("org_1").headers() == {"x-responses-organization": "org_1"}
    assert list(Caller("a", "b", "c", "d", "e").headers()) == list(CALLER_HEADERS)
