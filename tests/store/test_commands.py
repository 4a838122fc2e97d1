"""The commands for organizations, keys and sessions, as an operator types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar.identity.authenticator import find_known
from sidecar.identity.secret import Secret
from sidecar.store import connect
from tests.store.commands import Run, runner, write_config


def as_json(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def is_taken(config: Path, secret: str) -> bool:
    digest = Secret(secret).digest
    with connect(f"sqlite:///{config.parent}/state/ledger.db") as connection:
        known = find_known(connection, [digest], began=0.0)[digest]
    return not known.revoked and (known.expires_at is None or known.expires_at > 0)


def test_a_key_goes_alone_to_standard_output_and_is_shown_once(run: Run, config: Path) -> None:
    run("orgs", "create", "acme")
    made = run("keys", "create", "acme", "--name", "ci")
    secret = made.stdout.strip()
    assert Secret(secret).is_whole
    assert secret not in made.stderr
    assert is_taken(config, secret)
    listed = run("keys", "list").output
    assert "ci" in listed
    assert secret[-4:] in listed
    assert secret not in listed + run("keys", "list", "--json").output


def test_a_key_has_what_was_asked_for(run: Run) -> None:
    run("orgs", "create", "acme")
    options = ["--scope", "admin", "--scope", "usage:read", "--expires", "90d", "--user", "alice"]
    token = as_json(run, "keys", "create", "acme", *options)
    assert (token["kind"], token["user"], token["scopes"]) == ("token", "alice", ["admin", "usage:read"])
    assert token["secret"].startswith("b3os_pat_")
    assert token["expires_at"] > token["created_at"]
    key = as_json(run, "keys", "create", "acme")
    assert (key["kind"], key["scopes"], key["expires_at"]) == ("key", ["infer:read", "infer:run"], None)
    assert [one["state"] for one in as_json(run, "keys", "list", "--org", "acme")] == ["active", "active"]


def test_a_key_is_revoked(run: Run, config: Path) -> None:
    run("orgs", "create", "acme")
    key = as_json(run, "keys", "create", "acme")
    assert run("keys", "revoke", key["id"]).output == f"{key['id']} is revoked.\n"
    assert not is_taken(config, key["secret"])
    assert [one["state"] for one in as_json(run, "keys", "list")] == ["revoked"]
    assert "revoked" in run("keys", "list").output


def test_a_key_is_rotated_with_a_grace_or_without(run: Run, config: Path) -> None:
    run("orgs", "create", "acme")
    first = as_json(run, "keys", "create", "acme", "--name", "ci")
    second = as_json(run, "keys", "rotate", first["id"], "--grace", "1h")
    assert second["name"] == "ci"
    assert is_taken(config, first["secret"])
    assert is_taken(config, second["secret"])
    third = as_json(run, "keys", "rotate", second["id"], "--grace", "0s")
    assert [is_taken(config, one["secret"]) for one in (second, third)] == [False, True]
    assert [one["state"] for one in as_json(run, "keys", "list")] == ["active", "replaced", "active"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--expires", "0d"), "A credential has to count for some time."),
        (("--project", "p", "--environment", "e", "--user", "bob"), "A key belongs to a project or to a user"),
        (("--project", "p", "--environment", "e", "--scope", "admin"), "A project's key cannot have the scope admin"),
        (("--project", "p", "--environment", "e", "--scope", "usage:read"), "cannot have the scope usage:read"),
    ],
)
def test_a_key_that_would_never_serve_is_not_made(run: Run, options: tuple[str, ...], words: str) -> None:
    run("orgs", "create", "acme")
    assert words in run("keys", "create", "acme", *options, status=1).output
    assert as_json(run, "keys", "list") == []


def test_sessions_are_made_listed_and_ended(run: Run) -> None:
    run("orgs", "create", "acme")
    session = as_json(run, "sessions", "create", "acme", "--user", "bob", "--expires", "30m")
    assert session["secret"].startswith("b3os_ses_")
    assert [one["id"] for one in as_json(run, "sessions", "list")] == [session["id"]]
    assert as_json(run, "keys", "list") == []
    run("sessions", "end", session["id"])
    assert as_json(run, "sessions", "list") == []
    as_json(run, "sessions", "create", "acme", "--user", "bob", "--expires", "30d")


def test_organizations_have_limits_and_credits(run: Run) -> None:
    acme = as_json(run, "orgs", "create", "acme", "--prepaid")
    assert as_json(run, "orgs", "create", "[b]other", "--id", "tenant-7")["id"] == "tenant-7"
    run("orgs", "set-limits", "acme", "--requests-per-minute", "60", "--period", "day", "--period-tokens", "9")
    run("orgs", "set-limits", "acme", "--model", "m", "--tokens-per-minute", "1000")
    run("orgs", "set-limits", "*", "--concurrent-requests", "4")
    changed = run("orgs", "set-limits", "acme", "--requests-per-minute", "none")
    assert changed.output == f"{acme['id']}: period day, period_tokens 9\n"
    assert as_json(run, "orgs", "credit", "acme", "25.5", "--reason", "invoice")["balance"] == "25.50"
    for _ in range(2):
        run("orgs", "credit", "acme", "-0.000000001", "--reason", "correction", "--id", "c7")
    found = as_json(run, "orgs", "list")
    by_name = {one["name"]: one for one in found["organizations"]}
    assert by_name["acme"]["limits"] == {"*": {"period": "day", "period_tokens": 9}, "m": {"tokens_per_minute": 1000}}
    assert (by_name["acme"]["balance"], by_name["acme"]["prepaid"]) == ("25.499999999", True)
    assert found["limits"] == {"*": {"concurrent_requests": 4}}
    table = run("orgs", "list").output
    assert all(words in table for words in ("[b]other", "25.499999999", "concurrent_requests 4"))


def test_an_organization_is_disabled_and_enabled(run: Run) -> None:
    acme = as_json(run, "orgs", "create", "acme")
    assert run("orgs", "disable", "acme").output == f"{acme['id']} acme: balance 0.00, disabled\n"
    assert as_json(run, "orgs", "list")["organizations"][0]["disabled_at"] is not None
    assert "disabled" in run("orgs", "list").output
    assert run("orgs", "enable", acme["id"]).output == f"{acme['id']} acme: balance 0.00\n"
    assert "active" in run("orgs", "list").output
    run("orgs", "disable", "nobody", status=1)
    run("orgs", "enable", "nobody", status=1)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("m", None),
        ("*", None),
        ("qwen3-8", "Warning: The configuration has no model qwen3-8. It has qwen3-8b. The limits are set, for"),
        ("small", "Warning: small is an alias of m; limits hold for the name of a model, not for its aliases."),
        ("zephyr", "Warning: The configuration has no model zephyr. It has m, qwen3-8b."),
    ],
)
def test_a_model_that_is_not_configured_is_told_and_taken(
    run: Run, config: Path, model: str, words: str | None
) -> None:
    content = yaml.safe_load(config.read_text())
    (first,) = content["models"]
    models = [{**first, "aliases": ["small"]}, {**first, "name": "qwen3-8b"}]
    config.write_text(yaml.safe_dump({**content, "models": models}))
    run("orgs", "create", "acme")
    limit = ("orgs", "set-limits", "acme", "--model", model, "--requests-per-minute")
    told = run(*limit, "0").stderr
    assert told.startswith(words) if words else told == ""
    assert as_json(run, "orgs", "list")["organizations"][0]["limits"] == {model: {"requests_per_minute": 0}}
    assert run(*limit, "none").stderr == ""


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("orgs create acme", 1, "There is an organization of this name or id already."),
        ("orgs create other --id acme", 1, "There is an organization of this name or id already."),
        ("orgs create *", 1, "A name has 1 to 128 printable characters"),
        ("orgs create a\x1b[31m", 1, "A name has 1 to 128 printable characters"),
        (f"orgs create {'n' * 129}", 1, "A name has 1 to 128 printable characters"),
        ("orgs create other --id *", 1, "An id has 1 to 128 printable characters without spaces"),
        ("keys create acme --name a\x1b[31m", 1, "The name of a credential has at most 256 printable characters."),
        (f"keys create acme --user {'u' * 257}", 1, "A user has 1 to 256 printable characters."),
        ("sessions create acme --user a\x07", 1, "A user has 1 to 256 printable characters."),
        (f"keys revoke b3os_sk_{'x' * 38}", 1, "This is a secret; name the credential by its id."),
        ("sessions create acme --user a --expires 31d", 1, "A session lasts from a minute to 30 days."),
        ("sessions create acme --user a --expires 59s", 1, "A session lasts from a minute to 30 days."),
        ("keys create nobody", 1, "There is no organization nobody."),
        ("keys create acme --scope root", 1, "there is no scope root"),
        ("keys create acme --expires soon", 2, "soon is no duration such as 90d"),
        ("keys revoke key_x", 1, "There is no credential key_x."),
        ("keys rotate key_x", 1, "There is no credential key_x."),
        ("sessions end ses_x", 1, "There is no credential ses_x."),
        ("orgs credit acme 1e3 --reason x", 2, "1e3 is no amount"),
        ("orgs credit acme 0.0000000001 --reason x", 2, "is no amount"),
        ("orgs set-limits acme --tokens-per-minute -1", 2, "-1 is neither a whole number from 0"),
        ("orgs set-limits acme --tokens-per-minute 1.5", 2, "1.5 is neither a whole number from 0"),
        ("orgs set-limits acme --period day", 1, "A quota needs both a period and its tokens."),
    ],
)
def test_what_cannot_be_is_said(run: Run, command: str, status: int, words: str) -> None:
    run("orgs", "create", "acme")
    result = run(*command.split(), status=status)
    assert words in " ".join(result.output.replace("│", " ").split())


def test_an_empty_user_makes_no_key_of_all(run: Run) -> None:
    run("orgs", "create", "acme")
    assert "A user has 1 to 256" in run("keys", "create", "acme", "--user", "", status=1).output


def test_a_name_is_never_another_s_id(run: Run) -> None:
    made = as_json(run, "orgs", "create", "acme")
    run("orgs", "create", made["id"], status=1)
    run("orgs", "create", "acme ", status=1)


def test_a_key_is_replaced_once(run: Run) -> None:
    run("orgs", "create", "acme")
    old = as_json(run, "keys", "create", "acme")
    new = as_json(run, "keys", "rotate", old["id"])
    again = run("keys", "rotate", old["id"], status=1)
    assert again.output == f"{old['id']} has been replaced by {new['id']}.\n"
    assert as_json(run, "keys", "rotate", new["id"])["expires_at"] is None


def test_only_making_an_organization_makes_a_store(run: Run, config: Path) -> None:
    assert "there is no" in run("orgs", "list", status=1).output
    assert "there is no" in run("usage", status=1).output
    assert not (config.parent / "state").exists()
    run("orgs", "create", "acme")
    run("orgs", "list")


def test_a_configuration_and_a_store_that_cannot_be_used_are_said(run: Run, config: Path) -> None:
    directory = config.parent / "state"
    directory.mkdir()
    (directory / "ledger.db").write_text("nonsense that is no database, however long it is read")
    assert "The store cannot be used: " in run("keys", "list", status=1).output
    config.write_text("node: n\n")
    assert "models: this key is needed" in run("keys", "list", status=2).output


@pytest.mark.parametrize(
    "command", [("usage",), ("orgs", "list"), ("keys", "list"), ("reconcile",), ("store", "migrate")]
)
def test_without_accounts_there_is_nothing_to_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    config = write_config(tmp_path)
    settings = yaml.safe_load(config.read_text())
    del settings["store"]
    config.write_text(yaml.safe_dump({**settings, "accounts": False}))
    assert "there is no store" in runner(config)(*command, status=2).output
    assert [path.name for path in tmp_path.iterdir()] == [config.name]
