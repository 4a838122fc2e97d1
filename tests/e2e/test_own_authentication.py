"""An operator's own authentication before ours, put together from the snippets of docs/identity.md."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from sidecar.config.identity import TrustedIdentity
from sidecar.envoy.render import render
from sidecar.envoy.settings import EnvoySettings
from sidecar.extproc import messages
from sidecar.identity.trusted import Trusted
from sidecar.responses.caller import Caller
from stack.envoy import Envoy
from stack.paths import ROOT
from tests.e2e.authorizer import KEY, Authorizer, serving
from tests.e2e.raw_http import Reply, exchange, request
from tests.e2e.test_envoy import PATH, Recorder, settings, wait_for_sidecar

_BLOCKS = [block.partition("```")[0] for block in (ROOT / "docs" / "identity.md").read_text().split("```yaml\n")[1:]]
CLAIMS, MARK, JWT_FILTER, SEES_CLAIMS, HEADERS, SEES_HEADERS = map(yaml.safe_load, _BLOCKS)
SIGNING_KEY = ec.generate_private_key(ec.SECP256R1())
GOOD = {"iss": "https://login.example.com", "aud": "responses", "org": "acme", "sub": "alice", "scope": "infer:run"}


def in_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwks() -> str:
    public = SIGNING_KEY.public_key().public_numbers()
    key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k1"}
    point = {"x": in_base64(public.x.to_bytes(32, "big")), "y": in_base64(public.y.to_bytes(32, "big"))}
    return json.dumps({"keys": [{**key, **point}]})


def token(signing_key: ec.EllipticCurvePrivateKey = SIGNING_KEY, seconds: int = 600, **claims: Any) -> str:
    """A JSON Web Token (RFC 7519), signed with ES256."""
    payload = {**GOOD, "exp": int(time.time()) + seconds, **claims}
    parts = ({"alg": "ES256", "kid": "k1", "typ": "JWT"}, payload)
    signed = ".".join(in_base64(json.dumps(part).encode()) for part in parts)
    r, s = utils.decode_dss_signature(signing_key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{in_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def configuration(chosen: EnvoySettings, sees: dict[str, Any], before: list[dict[str, Any]]) -> str:
    """Envoy's configuration with the snippets in it: ``before`` are filters before ``ext_authz``."""
    config = yaml.safe_load(render(chosen))
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["route_config"]["virtual_hosts"][0].update(MARK)
    filters = manager["http_filters"]
    (place,) = [index for index, one in enumerate(filters) if one["name"] == "envoy.filters.http.ext_authz"]
    filters[place]["typed_config"].update(sees)
    filters[place:place] = before
    return yaml.safe_dump(config, sort_keys=False)


@contextmanager
def trusting(
    run_dir: Path, sources: dict[str, Any], sees: dict[str, Any], before: list[dict[str, Any]]
) -> Iterator[Own]:
    chosen, recorder = settings(run_dir, "tunnel"), Recorder()
    trusted = Trusted(TrustedIdentity.model_validate(sources["identity"]["trusted"]))
    with serving(chosen.worker_sockets[0], Authorizer(trusted), recorder):
        envoy = Envoy(chosen, run_dir, configuration(chosen, sees, before))
        try:
            envoy.wait_ready()
            wait_for_sidecar(envoy)
            yield Own(chosen.port, recorder)
        finally:
            envoy.process.stop()


class Own:
    """A node behind authentication of an operator's own; its sidecar lets nothing go on, and says what it was told."""

    def __init__(self, port: int, recorder: Recorder) -> None:
        self._port = port
        self._recorder = recorder

    def ask(self, *headers: str) -> Reply:
        return exchange(self._port, [request("POST", PATH, headers=headers, body=b"{}")])

    def told(self, *headers: str) -> dict[str, str]:
        """The headers that go on."""
        assert self.ask(*headers).status == 418
        return messages.headers_of(self._recorder.heads.get(timeout=10).request_headers.headers)


@pytest.fixture(scope="module")
def by_claims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    run_dir = tmp_path_factory.mktemp("claims")
    JWT_FILTER["typed_config"]["providers"]["company"]["local_jwks"] = {"inline_string": jwks()}
    with trusting(run_dir, CLAIMS, SEES_CLAIMS, [JWT_FILTER]) as own:
        yield own


@pytest.fixture(scope="module")
def by_headers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    with trusting(tmp_path_factory.mktemp("headers"), HEADERS, SEES_HEADERS, []) as own:
        yield own


def bearer(text: str) -> str:
    return f"Authorization: Bearer {text}"


def test_verified_claims_say_who_a_request_is_from(by_claims: Own) -> None:
    told = by_claims.told(bearer(token()), "x-responses-organization: other", "x-responses-key: key_9")
    assert Caller.of(told) == Caller("acme", "", "alice")
    assert "authorization" not in told


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [bearer(KEY)],
        [bearer(token(ec.generate_private_key(ec.SECP256R1())))],
        [bearer(token(seconds=-120))],
        [bearer(token(iss="https://evil.example"))],
        [bearer(token(org=None))],
        ["x-tenant: acme"],
    ],
    ids=["nothing", "a key", "another signature", "expired", "issuer", "no organization", "a header"],
)
def test_what_is_not_verified_is_401(by_claims: Own, sent: list[str]) -> None:
    reply = by_claims.ask(*sent)
    assert (reply.status, reply.error()["code"]) == (401, "unauthorized")


def test_a_token_for_somebody_else_is_403(by_claims: Own) -> None:
    reply = by_claims.ask(bearer(token(aud="other")))
    assert (reply.status, reply.error()["code"]) == (403, "forbidden")


def test_a_claim_that_lacks_the_scope_is_403(by_claims: Own) -> None:
    reply = by_claims.ask(bearer(token(scope="openid infer:read")))
    assert (reply.status, reply.error()["code"]) == (403, "forbidden")
    assert "infer:run" in reply.error()["message"]


def test_a_trusted_proxy_s_headers_say_who_a_request_is_from(by_headers: Own) -> None:
    told = by_headers.told("X-Tenant: acme", "X-Remote-User: alice@example.com", "x-responses-organization: other")
    assert Caller.of(told) == Caller("acme", "", "alice@example.com")
    assert not {"x-tenant", "x-remote-user"} & told.keys()


@pytest.mark.parametrize("sent", [[], [bearer(KEY)], ["X-Tenant: a", "X-Tenant: b"], ["X-Tenant: a b"]])
def test_without_one_tenant_it_is_401(by_headers: Own, sent: list[str]) -> None:
    reply = by_headers.ask(*sent)
    assert (reply.status, reply.error()["code"]) == (401, "unauthorized")


def test_elsewhere_the_same_is_nothing(tmp_path: Path) -> None:
    chosen = settings(tmp_path, "tunnel")
    trusted = Trusted(TrustedIdentity.model_validate(HEADERS["identity"]["trusted"]))
    with serving(chosen.worker_sockets[0], Authorizer(trusted)):
        envoy = Envoy(chosen, tmp_path)
        try:
            envoy.wait_ready()
            wait_for_sidecar(envoy)
            sent = request("POST", PATH, headers=["X-Tenant: acme", bearer(token())], body=b"{}")
            assert exchange(chosen.port, [sent]).status == 401
        finally:
            envoy.process.stop()
