"""The commands for stored responses: the master key changes, a team is shredded, nothing is stored where that holds."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml

from sidecar.cli.check import check_master_keys
from sidecar.cli.finding import BAD, GOOD, REFUSED
from sidecar.config.load import load
from sidecar.store import connect
from sidecar.stored.chain import NotStored
from sidecar.stored.keep import Kept
from sidecar.stored.master_keys import KeyUnknown, MasterKeys
from sidecar.stored.owner import Owner
from tests.store.commands import Run
from tests.store.stored_kit import keep, record, rows, texts

KEYS = [bytes(range(start, start + 32)) for start in (0, 32)]
OLD, NEW = (MasterKeys([key]) for key in KEYS)


@pytest.fixture
def url(config: Path) -> str:
    return f"sqlite:///{config.parent}/state/ledger.db"


@pytest.fixture
def team(run: Run, url: str) -> Owner:
    """An organization that has stored a response in each of two projects."""
    id_ = json.loads(run("orgs", "create", "acme", "--json").stdout)["id"]
    with connect(url) as connection:
        for project in ("support", "search"):
            assert keep(connection, record(Owner(id_, project, "production")), masters=OLD) == [Kept.STORED]
    return Owner(id_, "support", "production")


def configure(config: Path, *keys: bytes, env: str | None = None) -> None:
    content = yaml.safe_load(config.read_text())
    file = config.parent / "master.key"
    file.write_text("".join(f"{base64.b64encode(key).decode()}\n" for key in keys))
    file.chmod(0o600)
    config.write_text(
        yaml.safe_dump({**content, "stored": {"master_key_env": env} if env else {"master_key": file.name}})
    )


def read(url: str, owner: Owner, masters: MasterKeys) -> list[list[str]]:
    ids = [row["id"] for row in rows(url, "SELECT id FROM stored_responses WHERE project = :p", p=owner.project)]
    with connect(url) as connection:
        return [texts(connection, owner, id_, masters) for id_ in ids]


def test_the_master_key_is_changed(run: Run, config: Path, url: str, team: Owner) -> None:
    before = read(url, team, OLD)
    configure(config, KEYS[1], KEYS[0])
    assert run("stored", "rotate").output.startswith("1 data keys were wrapped by another master key")
    assert run("stored", "rotate").output.startswith("0 data keys")
    assert read(url, team, NEW) == before
    with pytest.raises(KeyUnknown):
        read(url, team, OLD)


def test_a_check_finds_keys_that_are_not_configured(config: Path, team: Owner) -> None:
    def found() -> list[tuple[int, str]]:
        return [(finding.status, finding.text) for finding in check_master_keys(load(config))]

    configure(config, *KEYS)
    assert found() == [(GOOD, "stored: the master keys open all data keys")]
    configure(config, KEYS[1])
    words = f"stored: 1 data keys are wrapped by the master key {OLD.first}, which is not configured"
    assert found() == [(BAD, words)]
    (config.parent / "master.key").chmod(0o644)
    ((status, text),) = found()
    assert (status, text.endswith("has the mode 0644: others may read or change it; chmod 600")) == (REFUSED, True)


def test_it_may_be_in_the_environment(run: Run, config: Path, team: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(config, env="MASTER_KEY")
    assert "stored.master_key_env: MASTER_KEY must hold 32 bytes" in run("stored", "rotate", status=2).output
    monkeypatch.setenv("MASTER_KEY", base64.b64encode(KEYS[0]).decode())
    assert run("stored", "rotate").output.startswith("0 data keys")


def test_without_the_old_key_nothing_is_changed(run: Run, config: Path, url: str, team: Owner) -> None:
    configure(config, KEYS[1])
    refused = run("stored", "rotate", status=1).output
    assert OLD.first in refused
    assert "Nothing has changed" in refused
    assert read(url, team, OLD)


def test_a_rotation_needs_a_key(run: Run, team: Owner) -> None:
    assert "needs master_key or master_key_env" in run("stored", "rotate", status=2).output


def test_of_a_shredded_team_not_even_its_wrapped_key_is_left(run: Run, url: str, team: Owner) -> None:
    (key,) = rows(url, "SELECT wrapped FROM stored_keys")
    file = Path(url.removeprefix("sqlite:///"))

    def is_there() -> bool:
        return any(key["wrapped"] in path.read_bytes() for path in file.parent.glob(f"{file.name}*"))

    assert is_there()
    assert run("stored", "shred", "acme").output == "The data key of acme is gone, and so are 2 responses.\n"
    assert not is_there()
    assert rows(url, "SELECT id FROM stored_responses") == rows(url, "SELECT response_id FROM stored_contents") == []
    assert run("stored", "shred", "acme").output == "acme has no data key: nothing is stored.\n"
    assert "nobody" in run("stored", "shred", "nobody", status=1).output


def test_zero_retention_is_switched_on_and_off(run: Run, url: str, team: Owner) -> None:
    switched = run("stored", "zero-retention", "acme", "on", "--project", "support")
    assert "Stored responses that have been deleted: 1." in switched.stderr
    assert "support" in switched.stdout
    assert [row["project"] for row in rows(url, "SELECT project FROM stored_responses")] == ["search"]
    environment = ("--project", "search", "--environment", "staging")
    run("stored", "zero-retention", "acme", "on", *environment)
    assert json.loads(run("stored", "zero-retention", "acme", "--json").stdout) == [
        {"project": "search", "environment": "staging"},
        {"project": "support", "environment": "*"},
    ]
    with connect(url) as connection:
        assert keep(connection, record(team), masters=OLD) == [Kept.FORBIDDEN]
    run("stored", "zero-retention", "acme", "off", "--project", "support")
    assert json.loads(run("stored", "zero-retention", "acme", "off", *environment, "--json").stdout) == []
    with connect(url) as connection:
        assert keep(connection, record(team), masters=OLD) == [Kept.STORED]


def test_for_the_whole_team_all_goes(run: Run, url: str, team: Owner) -> None:
    run("stored", "zero-retention", "acme", "on")
    assert rows(url, "SELECT id FROM stored_responses") == []
    with connect(url) as connection, pytest.raises(NotStored):
        texts(connection, team, "resp_x", OLD)


def test_an_environment_is_one_of_a_project(run: Run, team: Owner) -> None:
    assert "--project is needed" in run("stored", "zero-retention", "acme", "on", "--environment", "e", status=2).output


@pytest.mark.parametrize("place", ["", "no such", "*", "a/b"])
def test_what_can_be_no_name_is_not_taken_for_all(run: Run, url: str, team: Owner, place: str) -> None:
    before = rows(url, "SELECT id FROM stored_responses")
    for level in (("--project", place), ("--project", "support", "--environment", place)):
        assert "1 to 64 letters" in run("stored", "zero-retention", "acme", "on", *level, status=2).output
    assert rows(url, "SELECT id FROM stored_responses") == before
    assert json.loads(run("stored", "zero-retention", "acme", "--json").stdout) == []


def test_a_project_without_keys_may_be_mistyped(run: Run, team: Owner) -> None:
    assert "has no key of this project" in run("stored", "zero-retention", "acme", "on", "--project", "suport").stderr
    off = ("stored", "zero-retention", "acme", "off", "--project")
    assert run(*off, "suport").exit_code == 0
    assert "not required at this level" in run(*off, "support", status=1).output
