"""Credentials as clients send them, through Envoy and a sidecar with a store: who is let in, what others are told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.identity.secret import Kind, Secret, mint
from stack import procfs
from stack.first_key import command
from stack.local import LocalStack
from tests.e2e.raw_http import Reply, exchange, request

PATH = "/v1/infer/responses"
MODELS = "/v1/infer/models"
WITHIN_SECONDS = 5


class Node:
    """A stack, and credentials made by its commands."""

    def __init__(self, stack: LocalStack) -> None:
        self.stack = stack
        self.made: list[str] = []

    def run(self, *arguments: str) -> Any:
        """What a command prints; a secret is kept to be looked for."""
        printed = command(self.stack.sidecar.config, *arguments)
        if isinstance(printed, dict) and "secret" in printed:
            self.made.append(printed["secret"])
        return printed

    def key(self, *options: str) -> Any:
        return self.run("keys", "create", "local", *options)

    def revoke(self, id_: str) -> None:
        # It prints a line for people alone.
        assert command_text(self.stack, "keys", "revoke", id_) == f"{id_} is revoked.\n"

    def ask(self, *headers: str, method: str = "POST", path: str = PATH) -> Reply:
        body = json.dumps({"model": "scripted", "input": "Hello", "max_output_tokens": 1}).encode()
        lines = [*headers, *(["Content-Type: application/json"] if method == "POST" else [])]
        sent = request(method, path, headers=lines, body=body if method == "POST" else b"")
        return exchange(self.stack.port, [sent])


def command_text(stack: LocalStack, *arguments: str) -> str:
    from typer.testing import CliRunner

    from sidecar.cli import app

    result = CliRunner().invoke(app, [*arguments, "--config", str(stack.sidecar.config)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def node(stack: LocalStack) -> Iterator[Node]:
    node = Node(stack)
    yield node
    # After all else: whatever was asked of it, nothing of a secret is anywhere.
    nothing_secret_is_left(node)


def bearer(secret: str, scheme: str = "Bearer") -> str:
    return f"Authorization: {scheme} {secret}"


def cookie(secret: str) -> str:
    return f"Cookie: theme=dark; __Host-b3os_session={secret}"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_key_is_taken_whatever_the_scheme_s_case(node: Node, scheme: str) -> None:
    assert node.ask(bearer(node.stack.api_key, scheme)).status == 200


def test_a_token_and_a_session_are_taken_too(node: Node) -> None:
    token = node.key("--user", "alice")["secret"]
    session = node.run("sessions", "create", "local", "--user", "alice")["secret"]
    assert node.ask(bearer(token)).status == 200
    assert node.ask(cookie(session)).status == 200
    assert node.ask(cookie(session), "Sec-Fetch-Site: same-origin", "Origin: http://node").status == 200


def refused(node: Node, *headers: str, path: str = PATH, method: str = "POST") -> tuple[int, str]:
    reply = node.ask(*headers, path=path, method=method)
    return reply.status, reply.error()["message"]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([], "No API key was sent; send it as Authorization: Bearer …"),
        ([bearer(mint(Kind.KEY).text)], "The credential is unknown."),
        ([cookie(mint(Kind.SESSION).text)], "The credential is unknown."),
        ([bearer("sk-proj-1")], "This is no API key of this service: they start with b3os_sk_ or b3os_pat_"),
    ],
    ids=["none", "unknown key", "unknown session", "another's"],
)
def test_what_is_unknown_is_401(node: Node, headers: list[str], message: str) -> None:
    assert refused(node, *headers) == (401, message)


def test_a_truncated_key_is_told_so(node: Node) -> None:
    words = "API key checksum does not match; check that the whole key was copied"
    assert refused(node, bearer(node.stack.api_key[:-3])) == (401, words)


def test_more_than_one_credential_is_401(node: Node) -> None:
    key, words = node.stack.api_key, "More than one credential was sent; send exactly one."
    session = node.run("sessions", "create", "local", "--user", "bob")["secret"]
    assert refused(node, bearer(key), bearer(key)) == (401, words)
    assert refused(node, bearer(key), bearer(mint(Kind.KEY).text)) == (401, words)
    assert refused(node, bearer(key), cookie(session)) == (401, words)
    assert refused(node, cookie(session), cookie(session)) == (401, words)


def test_a_key_in_the_query_is_ignored(node: Node) -> None:
    key = node.stack.api_key
    path = f"{PATH}?api_key={key}&key={key}&authorization=Bearer%20{key}"
    assert refused(node, path=path)[0] == 401
    assert node.ask(bearer(key), path=f"{PATH}?api_key={mint(Kind.KEY).text}").status == 200


def test_an_expired_key_is_401(node: Node) -> None:
    key = node.key("--expires", "1s")["secret"]
    until(node, [bearer(key)], (401, "The API key has expired."), WITHIN_SECONDS)


def until(node: Node, headers: list[str], expected: tuple[int, str], seconds: float) -> None:
    """Ask until the answer is ``expected``, which must be within ``seconds``; until then it is 200."""
    deadline = time.monotonic() + seconds
    while (reply := node.ask(*headers)).status == 200:
        assert time.monotonic() < deadline
    assert (reply.status, reply.error()["message"]) == expected


def test_a_scope_that_is_missing_is_403_and_named(node: Node) -> None:
    reader = node.key("--scope", "infer:read")["secret"]
    runner = node.key("--scope", "infer:run")["secret"]
    assert node.ask(bearer(reader), method="GET", path=MODELS).status == 200
    assert node.ask(bearer(runner)).status == 200
    words = "The scope {} is needed, which these credentials do not have."
    assert refused(node, bearer(reader)) == (403, words.format("infer:run"))
    assert refused(node, bearer(runner), method="GET", path=MODELS) == (403, words.format("infer:read"))
    assert refused(node, bearer(runner), method="GET", path=f"{MODELS}/x") == (403, words.format("infer:read"))


@pytest.mark.parametrize(
    "headers",
    [
        ["Sec-Fetch-Site: cross-site"],
        ["Sec-Fetch-Site: same-site"],
        ["Origin: https://evil.example"],
        ["Origin: null"],
        ["Sec-Fetch-Site: cross-site", "Origin: http://node"],
        ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"],
    ],
)
def test_another_site_cannot_use_a_session(node: Node, headers: list[str]) -> None:
    session = node.run("sessions", "create", "local", "--user", "carol")["secret"]
    assert node.ask(cookie(session)).status == 200
    assert refused(node, cookie(session), *headers)[0] == 403
    assert node.ask(bearer(node.stack.api_key), *headers).status == 200


def answers(node: Node, key: str, count: int = 40) -> list[int]:
    """The answers to so many requests that every worker has some."""
    return [node.ask(bearer(key), method="GET", path=MODELS).status for _ in range(count)]


def test_a_revoked_key_is_refused_by_every_worker_within_seconds(node: Node) -> None:
    made = node.key()
    assert len(node.stack.pids()["workers"]) == 2  # type: ignore[arg-type]
    assert set(answers(node, made["secret"])) == {200}
    node.revoke(made["id"])
    is_refused_by_all(node, made["secret"])
    assert refused(node, bearer(made["secret"])) == (401, "The API key was revoked.")


def is_refused_by_all(node: Node, key: str) -> None:
    """Ask until no worker takes ``key``, which must be within seconds."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while 200 in answers(node, key):
        assert time.monotonic() < deadline


def test_a_disabled_organization_is_refused_by_every_worker_within_seconds(node: Node) -> None:
    node.run("orgs", "create", "closing")
    key = node.run("keys", "create", "closing")["secret"]
    assert set(answers(node, key)) == {200}
    node.run("orgs", "disable", "closing")
    is_refused_by_all(node, key)
    assert refused(node, bearer(key)) == (401, "The organization of the API key is disabled.")
    assert node.ask(bearer(node.stack.api_key)).status == 200
    node.run("orgs", "enable", "closing")
    deadline = time.monotonic() + WITHIN_SECONDS
    while set(answers(node, key)) != {200}:
        assert time.monotonic() < deadline


def test_a_rotated_key_and_its_successor_are_both_taken(node: Node) -> None:
    old = node.key()
    new = node.run("keys", "rotate", old["id"], "--grace", "1h")
    assert [node.ask(bearer(one["secret"])).status for one in (old, new)] == [200, 200]
    gone = node.run("keys", "rotate", new["id"], "--grace", "0s")
    until(node, [bearer(new["secret"])], (401, "The API key has been replaced by another."), WITHIN_SECONDS)
    assert node.ask(bearer(gone["secret"])).status == 200


def test_the_last_use_is_noted(node: Node) -> None:
    made = node.key()
    assert made["last_used_at"] is None
    assert node.ask(bearer(made["secret"])).status == 200
    deadline = time.monotonic() + 30
    while {key["id"]: key for key in node.run("keys", "list")}[made["id"]]["last_used_at"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_all_refusals_have_one_shape(node: Node) -> None:
    """What differs are the words alone."""
    expired, revoked = node.key("--expires", "1s"), node.key()
    node.revoke(revoked["id"])
    deadline = time.monotonic() + 10
    while node.ask(bearer(expired["secret"])).status != 401:
        assert time.monotonic() < deadline
    secrets = [mint(Kind.KEY).text, node.stack.api_key[:-1], expired["secret"], revoked["secret"], "sk-1"]
    replies = [node.ask(), *(node.ask(bearer(secret)) for secret in secrets)]
    assert {reply.status for reply in replies} == {401}
    assert {reply.headers["www-authenticate"] for reply in replies} == {"Bearer"}
    assert len({tuple(sorted(reply.headers)) for reply in replies}) == 1
    assert {tuple(reply.error()) for reply in replies} == {("message", "type", "param", "code")}
    assert {(reply.error()["type"], reply.error()["code"]) for reply in replies} == {
        ("authentication_error", "unauthorized")
    }
    assert len({reply.headers["x-request-id"] for reply in replies}) == len(replies)


def test_a_refusal_does_not_say_what_was_sent(node: Node) -> None:
    secret = mint(Kind.KEY).text
    for text in (secret, secret[:-1], f"{secret}x", f"Basic {secret}"):
        reply = node.ask(bearer(text))
        assert secret[8:20] not in f"{reply.headers} {reply.body!r}"


def nothing_secret_is_left(node: Node) -> None:
    """Look for every secret that was made in the logs, the command lines and the files of a node."""
    stack = node.stack
    secrets = {node.stack.api_key, *node.made}
    assert len(secrets) > 10
    assert found_in(files(stack.run_dir), secrets) == {"key.json"}
    assert found_in(command_lines(stack), secrets) == set()
    open_to_others = {
        path.name for path in stack.run_dir.rglob("*") if is_private(path) and path.stat().st_mode & 0o077
    }
    assert open_to_others == set()


def is_private(path: Path) -> bool:
    return path.name == "key.json" or path.name.startswith("ledger.db") or path.name in ("state", "sockets")


def files(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield path.name, path.read_bytes()


def command_lines(stack: LocalStack) -> Iterator[tuple[str, bytes]]:
    for pid in procfs.all_pids():
        yield str(pid), "\0".join(procfs.command_line(pid)).encode()


def found_in(texts: Iterable[tuple[str, bytes]], secrets: Iterable[str]) -> set[str]:
    """The names of the texts in which the random part of any of ``secrets`` stands."""
    parts = [secret[9:41].encode() for secret in secrets]
    return {name for name, text in texts if any(part in text for part in parts)}


def test_a_secret_would_be_found(tmp_path: Path) -> None:
    secret: Secret = mint(Kind.KEY)
    (tmp_path / "a.log").write_text(f"key={secret.text}")
    (tmp_path / "b.log").write_text("nothing")
    assert found_in(files(tmp_path), [secret.text]) == {"a.log"}
