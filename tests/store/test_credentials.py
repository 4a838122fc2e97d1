"""Credentials in the store: what is issued is found by its secret alone, and for as long as it should."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from sidecar.config.identity import IdentityConfig
from sidecar.identity.authenticator import Authenticator, find_known
from sidecar.identity.identity import INFERENCE
from sidecar.identity.last_used import Touch
from sidecar.identity.organizations import OrganizationError, create, disable, enable
from sidecar.identity.organizations import find as find_organization
from sidecar.identity.records import Record, Terms, UnknownCredential, find, issue, listed, replace, revoke
from sidecar.identity.secret import Kind, Secret, mint
from sidecar.identity.sessions import begin, end
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.store import Store, connect
from sidecar.store.tables import credentials, organizations


def terms(connection: Connection, kind: Kind = Kind.KEY, seconds: float | None = None) -> Terms:
    """Terms for a new credential of the organization acme, which is made where it is not there."""
    found = connection.execute(select(organizations.c.id)).scalar()
    id_ = found or create(connection, "acme", prepaid=False).id
    return Terms(kind, id_, INFERENCE, "ci", user="alice", seconds=seconds)


def refusal(url: str, secret: Secret, after: float = 0.0) -> str | None:
    """Why ``secret`` is refused ``after`` seconds from now, if it is."""
    from sidecar.identity.known import admit

    with connect(url) as connection:
        found = find_known(connection, [mint(Kind.KEY).digest, secret.digest], began=100.0)
    try:
        admit(secret.digest, found.get(secret.digest), 100.0 + after)
    except ApiError as error:
        return error.message
    return None


def test_what_is_issued_is_found_by_its_secret(store_url: str) -> None:
    with connect(store_url) as connection:
        secret, record = issue(connection, terms(connection))
        known = find_known(connection, [secret.digest], began=0.0)[secret.digest]
    assert record.id.startswith("key_")
    assert (known.identity.caller.key, known.identity.caller.user) == (record.id, "alice")
    assert (known.identity.scopes, known.expires_at) == (INFERENCE, None)
    assert refusal(store_url, secret) is None
    assert refusal(store_url, mint(Kind.KEY)) == "The credential is unknown."


def test_no_secret_is_in_the_store(sqlite_url: str) -> None:
    with connect(sqlite_url) as connection:
        secret, _ = issue(connection, terms(connection))
    directory = Path(sqlite_url.removeprefix("sqlite:///")).parent
    content = b"".join(file.read_bytes() for file in directory.iterdir())
    assert secret.digest in content
    assert secret.text[8:40].encode() not in content
    assert all(file.stat().st_mode & 0o077 == 0 for file in [directory, *directory.iterdir()])


def test_one_that_expires_does_so_by_the_clock_of_the_store(store_url: str) -> None:
    with connect(store_url) as connection:
        secret, _ = issue(connection, terms(connection, seconds=60))
    assert refusal(store_url, secret) is None
    assert refusal(store_url, secret, after=50) is None
    assert refusal(store_url, secret, after=60) == "The API key has expired."


def test_one_that_is_revoked_counts_no_more(store_url: str) -> None:
    with connect(store_url) as connection:
        secret, record = issue(connection, terms(connection))
        ended = revoke(connection, record.id)
        assert revoke(connection, record.id) == ended
    assert refusal(store_url, secret) == "The API key was revoked."


def test_an_organization_that_is_disabled_ends_its_keys(store_url: str) -> None:
    with connect(store_url) as connection:
        secret, _ = issue(connection, terms(connection))
        create(connection, "other", prepaid=False)
        disabled = disable(connection, "acme")
        assert disabled.disabled_at is not None
        assert disable(connection, disabled.id) == disabled
        assert find_organization(connection, "other").disabled_at is None
    assert refusal(store_url, secret) == "The organization of the API key is disabled."
    with connect(store_url) as connection:
        assert enable(connection, "acme").disabled_at is None
    assert refusal(store_url, secret) is None


def test_one_that_is_replaced_counts_for_its_grace(store_url: str) -> None:
    with connect(store_url) as connection:
        old, record = issue(connection, terms(connection))
        new, made = replace(connection, record.id, grace=60)
    assert (made.name, made.scopes, made.user, made.expires_at) == ("ci", INFERENCE, "alice", None)
    assert refusal(store_url, new) is None
    assert refusal(store_url, old, after=50) is None
    assert refusal(store_url, old, after=60) == "The API key has been replaced by another."


def test_a_replacement_lasts_as_long_as_the_old_one_and_adds_nothing_to_it(store_url: str) -> None:
    with connect(store_url) as connection:
        old, record = issue(connection, terms(connection, seconds=60))
        _, made = replace(connection, record.id, grace=3600)
    assert made.expires_at is not None
    assert made.expires_at - made.created_at == 60_000_000
    assert refusal(store_url, old, after=50) is None
    assert refusal(store_url, old, after=60) == "The API key has been replaced by another."


def test_one_that_has_ended_is_not_replaced(store_url: str) -> None:
    with connect(store_url) as connection:
        _, record = issue(connection, terms(connection))
        revoke(connection, record.id)
        with pytest.raises(UnknownCredential, match="has ended"):
            replace(connection, record.id, grace=60)
        with pytest.raises(UnknownCredential, match="There is no credential key_x"):
            replace(connection, "key_x", grace=60)


def test_sessions_are_begun_and_ended(store_url: str) -> None:
    with connect(store_url) as connection:
        _, key = issue(connection, terms(connection))
        secret, record = begin(connection, "acme", "bob", seconds=60)
        assert (record.kind, record.user, secret.text[:9]) == (Kind.SESSION, "bob", "b3os_ses_")
        end(connection, record.id)
        with pytest.raises(UnknownCredential, match="is no session"):
            end(connection, key.id)
        with pytest.raises(OrganizationError, match="There is no organization nobody"):
            begin(connection, "nobody", "bob")
    assert refusal(store_url, secret) == "The session was revoked."


def test_they_are_listed_by_kind_and_organization(store_url: str) -> None:
    with connect(store_url) as connection:
        made = [issue(connection, terms(connection, kind))[1] for kind in (Kind.KEY, Kind.TOKEN, Kind.SESSION)]
        other = create(connection, "other", prepaid=True).id
        issue(connection, Terms(Kind.KEY, other, INFERENCE))

        def ids(*kinds: Kind, organization: str | None = None) -> set[str]:
            return {record.id for record in listed(connection, kinds, organization)}

        assert ids(Kind.KEY, Kind.TOKEN, organization=made[0].organization) == {made[0].id, made[1].id}
        assert ids(Kind.SESSION) == {made[2].id}
        assert len(ids(*Kind)) == 4


def last_used(connection: Connection, record: Record) -> int | None:
    return find(connection, record.id).last_used_at


def test_the_last_use_is_noted_once_a_minute(store_url: str) -> None:
    touch = Touch()
    with connect(store_url) as connection:
        used, unused = (issue(connection, terms(connection))[1] for _ in range(2))
        assert touch.perform(connection, [frozenset({used.id}), frozenset({"key_gone", used.id})]) == [None, None]
        first = last_used(connection, used)
        assert first is not None
        assert first >= used.created_at
        touch.perform(connection, [frozenset({used.id})])
        assert last_used(connection, used) == first
        connection.execute(credentials.update().values(last_used_at=first - 61_000_000))
        touch.perform(connection, [frozenset({used.id})])
        assert (last_used(connection, used) or 0) >= first
        assert last_used(connection, unused) == first - 61_000_000


async def test_a_worker_knows_who_holds_a_credential_and_writes_that_it_was_used(store_url: str) -> None:
    with connect(store_url) as connection:
        secret, record = issue(connection, terms(connection))
    store = Store(store_url)
    try:
        authenticator = Authenticator(store, IdentityConfig(), stale=False)
        assert (await authenticator.identify(secret)).caller.key == record.id
        with pytest.raises(ApiError, match="unknown"):
            await authenticator.identify(mint(Kind.KEY))
        await authenticator.last_used.write()
    finally:
        await store.close()
    with connect(store_url) as connection:
        assert last_used(connection, record) is not None


async def test_a_revocation_reaches_a_worker_within_its_cache(store_url: str) -> None:
    with connect(store_url) as connection:
        secret, record = issue(connection, terms(connection))
    store = Store(store_url)
    try:
        authenticator = Authenticator(store, IdentityConfig(cache_seconds=0.1), stale=False)
        await authenticator.identify(secret)
        with connect(store_url) as connection:
            revoke(connection, record.id)
        revoked_at = time.monotonic()
        with pytest.raises(ApiError, match="revoked"):
            while time.monotonic() < revoked_at + 5:
                await authenticator.identify(secret)
    finally:
        await store.close()


async def test_while_the_store_is_down_uses_are_kept(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/none.db")
    try:
        authenticator = Authenticator(store, IdentityConfig(), stale=False)
        with pytest.raises(ApiError) as refused:
            await authenticator.identify(mint(Kind.KEY))
        assert refused.value.code == "node_unavailable"
        authenticator.last_used.note("key_1")
        await authenticator.last_used.write()
        assert authenticator.last_used.pending == {"key_1"}
    finally:
        await store.close()


def test_a_key_of_a_project_tells_where_it_belongs(store_url: str) -> None:
    with connect(store_url) as connection:
        id_ = create(connection, "acme", prepaid=False).id
        secret, record = issue(connection, Terms(Kind.PROJECT, id_, INFERENCE, project="support", environment="test"))
        assert (record.project, record.environment) == ("support", "test")
        (known,) = find_known(connection, [secret.digest], began=0.0).values()
        assert known.identity.caller == Caller(id_, record.id, "", "support", "test")
        successor = replace(connection, record.id, 0.0)[1]
        assert (successor.project, successor.environment) == ("support", "test")


@pytest.mark.parametrize(
    ("kind", "project", "environment"),
    [
        (Kind.PROJECT, None, None),
        (Kind.PROJECT, "p", None),
        (Kind.PROJECT, None, "e"),
        (Kind.KEY, "p", "e"),
        (Kind.PROJECT, "p", "a/b"),
        (Kind.PROJECT, "", "e"),
        (Kind.PROJECT, "p" * 65, "e"),
    ],
)
def test_a_project_and_its_environment_go_together(
    store_url: str, kind: Kind, project: str | None, environment: str | None
) -> None:
    with connect(store_url) as connection:
        id_ = create(connection, "acme", prepaid=False).id
        with pytest.raises(ValueError, match="project"):
            issue(connection, Terms(kind, id_, INFERENCE, project=project, environment=environment))
