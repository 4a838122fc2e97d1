"""Directives on both engines: set, changed and cleared by level, read by workers, and the balances of end users."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.admission.balances import Limit
from sidecar.admission.buckets import MICRO
from sidecar.admission.directive_rows import clear_directives, read_directives, set_directives
from sidecar.admission.directives import NONE, Directives, limits_of_user
from sidecar.admission.end_users import ForgetEndUsers
from sidecar.admission.entries import Admitted, Refused
from sidecar.exchange.direct import Direct
from sidecar.extproc.driver import Done
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.responses.level import ALL, Level
from sidecar.server.directing import SECONDS, STALE_SECONDS, Directing
from sidecar.store import Store, StoreUnavailable, connect
from sidecar.store.migrate import migrate
from sidecar.stored.zero_retention import require
from tests.store.commands import Run
from tests.store.ledger_kit import Books, completed, refused_by_the_model

CALLER = Caller("org_a", "prk_1", "", "support", "production")
TEAM, PROJECT = Level("org_a"), Level("org_a", "support")


def limits(user: str, requests: int | None = None, tokens: int | None = None) -> tuple[Limit, ...]:
    return tuple(limits_of_user(CALLER, user, requests, tokens))


def test_directives_are_set_changed_and_cleared_by_level(store_url: str) -> None:
    with connect(store_url) as connection:
        set_directives(connection, TEAM, {"max_output_tokens": 5, "excluded_vendors": ("a", "b")})
        set_directives(connection, TEAM, {"max_input_tokens": 7, "no_training": False})
        set_directives(connection, PROJECT, {"excluded_vendors": ()})
        set_directives(connection, Level("org_b"), {"max_output_tokens": 1})
        assert read_directives(connection, {"org_a"}) == [
            (TEAM, Directives(5, 7, False, ("a", "b"))),
            (PROJECT, Directives(excluded_vendors=())),
        ]
        assert set_directives(connection, PROJECT, {"excluded_vendors": None}) == NONE
        assert clear_directives(connection, TEAM)
        assert not clear_directives(connection, TEAM)
        assert read_directives(connection, {"org_a"}) == []
        assert len(read_directives(connection, {"org_a", "org_b"})) == 1


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def ask(directing: Directing, caller: Caller = CALLER) -> Directives:
    performing = directing.direct(Direct(caller))
    return performing.result if isinstance(performing, Done) else await performing


async def test_a_worker_asks_once_in_some_seconds(store: Store, store_url: str) -> None:
    clock, configured = Clock(), [(Level(ALL), Directives(max_output_tokens=9, max_input_tokens=8))]
    directing = Directing(store, configured, stale=False, clock=clock)
    assert await asyncio.gather(*(ask(directing) for _ in range(2))) == [Directives(9, 8)] * 2
    with connect(store_url) as connection:
        set_directives(connection, TEAM, {"max_output_tokens": 5})
        require(connection, PROJECT)
    clock.now += SECONDS - 0.1
    assert isinstance(directing.direct(Direct(CALLER)), Done)
    assert await ask(directing) == Directives(9, 8)
    clock.now += 0.2
    assert await ask(directing) == Directives(5, 8, retains_nothing=True)
    assert await ask(directing, Caller("org_a", "k", "", "other", "x")) == Directives(5, 8)
    assert await ask(directing, Caller("org_b")) == Directives(9, 8)


@pytest.mark.parametrize("stale", [True, False])
async def test_while_the_store_is_down_what_was_known_counts_where_that_is_wanted(
    store: Store, monkeypatch: pytest.MonkeyPatch, stale: bool
) -> None:
    clock = Clock()
    directing = Directing(store, [(TEAM, Directives(5))], stale=stale, clock=clock)
    assert await ask(directing) == Directives(5)

    async def fail(query: Any) -> Any:
        raise StoreUnavailable("down")

    monkeypatch.setattr(store, "read", fail)
    clock.now += SECONDS
    if stale:
        assert await ask(directing) == Directives(5)
        clock.now += STALE_SECONDS
    for caller in (CALLER, Caller("org_b")):
        with pytest.raises(ApiError) as refused:
            await ask(directing, caller)
        assert refused.value.code == "node_unavailable"


def test_an_end_user_has_so_many_requests_on_all_models_together(store_url: str) -> None:
    books = Books(store_url)
    first = books.admit(user_limits=limits("ada", 2))
    books.admit(user_limits=limits("ada", 2), model="other")
    _, outcome = books.reserve(user_limits=limits("ada", 2))
    assert isinstance(outcome, Refused)
    assert outcome.code == "rate_limited"
    assert outcome.message.startswith("2 requests per minute allowed to an end user; retry in ")
    assert outcome.standing.headers() == {}
    assert isinstance(books.reserve(user_limits=limits("bob", 2))[1], Admitted)
    assert isinstance(books.reserve()[1], Admitted)
    books.book(refused_by_the_model(first.id))
    assert isinstance(books.reserve(user_limits=limits("ada", 2))[1], Admitted)


def test_an_end_user_s_tokens_are_given_back_by_the_limit_that_they_were_taken_from(store_url: str) -> None:
    books = Books(store_url)
    asked = books.admit(user_limits=limits("ada", tokens=600))
    _, outcome = books.reserve(user_limits=limits("ada", tokens=600), output_tokens=580)
    assert isinstance(outcome, Refused)
    assert outcome.message.startswith("600 tokens per minute allowed to an end user; retry in ")
    # Another limit begins with a full bucket.
    assert isinstance(books.reserve(user_limits=limits("ada", tokens=590), output_tokens=580)[1], Admitted)
    books.book(completed(asked.id, output_tokens=5))
    (row,) = [row for row in books.rows("balances") if row["period"].endswith("/600")]
    assert (600 - 15) * MICRO <= row["level"] <= 600 * MICRO
    assert (row["model"], row["kind"]) == ("*", "user_tokens")


def test_balances_of_end_users_are_forgotten_when_they_are_full(store_url: str) -> None:
    books = Books(store_url)
    asked = books.admit(user_limits=limits("ada", 5, 1000))
    books.admit(user_limits=limits("bob", tokens=200), output_tokens=90)
    overdrawn = books.admit(user_limits=limits("eve", tokens=200))
    books.book(completed(overdrawn.id, output_tokens=900))
    now = max(row["updated_at"] for row in books.rows("balances"))

    def forget(minutes: int) -> set[str]:
        with connect(store_url) as connection:
            assert ForgetEndUsers(lambda connection: now + minutes * 60 * MICRO).perform(connection, [None]) == [False]
        return {row["kind"] for row in books.rows("balances")}

    assert forget(9) == {"user_requests", "user_tokens"}
    assert forget(11) == {"user_tokens"}
    assert len(books.rows("balances")) == 1
    # What is given back to a balance that is gone is not missed.
    books.book(completed(asked.id))
    assert isinstance(books.reserve(user_limits=limits("ada", 5, 1000))[1], Admitted)
    books.execute("DELETE FROM balances WHERE level > 0")
    assert forget(24 * 60 + 1) == set()


def test_directives_are_set_shown_and_cleared_by_commands(run: Run, config: Path) -> None:
    migrate(f"sqlite:///{config.parent}/state/ledger.db")
    config.write_text(config.read_text() + "directives: [{max_output_tokens: 100, no_training: true}]\n")
    run("orgs", "create", "acme", "--id", "org_a")
    at = ("--project", "support", "--environment", "production")
    options = ("--max-output-tokens", "50", "--excluded-vendors", "openai,azure", "--user-requests-per-minute", "0")
    (made,) = json.loads(run("directives", "set", "acme", *options, "--json").stdout)
    assert (made["max_output_tokens"], made["excluded_vendors"], made["no_training"]) == (50, ["openai", "azure"], None)
    more = ("--excluded-vendors", "nobody", "--no-training", "off", "--zero-data-retention", "on")
    run("directives", "set", "acme", *at, *more)
    shown = json.loads(run("directives", "show", "acme", *at, "--json").stdout)
    assert [one["set_by"] for one in shown] == ["command", "command", "configuration", "applied"]
    whole = shown[-1]
    assert (whole["max_output_tokens"], whole["no_training"], whole["excluded_vendors"]) == (50, False, [])
    assert (whole["user_requests_per_minute"], whole["zero_data_retention"]) == (0, True)
    (last,) = [line for line in run("directives", "show", "acme").stdout.splitlines() if line.startswith("applied")]
    assert last.split(maxsplit=3)[3].startswith(
        "max_output_tokens 50, no_training on, excluded_vendors openai and azure"
    )
    assert json.loads(run("stored", "zero-retention", "acme", "--json").stdout) == [
        {"project": "support", "environment": "production"}
    ]
    run("directives", "clear", "acme", *at)
    assert json.loads(run("stored", "zero-retention", "acme", "--json").stdout) == []
    assert "nothing has changed" in run("directives", "clear", "acme", *at, status=1).output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--max-output-tokens", "0"), "at least 1"),
        (("--max-input-tokens", "many"), "whole number"),
        (("--excluded-vendors", "a,,b"), "no list of vendors"),
        (("--environment", "production"), "--project is needed"),
    ],
)
def test_what_is_no_directive_is_refused(run: Run, config: Path, options: tuple[str, ...], words: str) -> None:
    migrate(f"sqlite:///{config.parent}/state/ledger.db")
    run("orgs", "create", "acme")
    assert words in run("directives", "set", "acme", *options, status=2).output


def test_a_directive_of_an_organization_that_there_is_not(run: Run, config: Path) -> None:
    migrate(f"sqlite:///{config.parent}/state/ledger.db")
    assert "There is no organization none." in run("directives", "show", "none", status=1).output
    assert "1 to 64 letters" in run("directives", "set", "none", "--project", "", status=1).output
