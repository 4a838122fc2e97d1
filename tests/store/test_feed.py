"""The usage feed over real gRPC: every record once for each cursor, on both engines, and none that is overtaken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import grpc
import pytest
from sqlalchemy import text

from sidecar.admission import records
from sidecar.admission.records import Adoption
from sidecar.feed import service
from sidecar.feed.server import start_feed
from sidecar.feed.service import SCOPE, UsageFeed
from sidecar.feed.usage_feed_pb2 import StreamRequest, StreamResponse
from sidecar.identity.authenticator import Authenticator
from sidecar.identity.records import revoke
from sidecar.store import Store, connect
from stack.net import free_port
from tests.store.ledger_kit import MODEL, PRICED, Books, completed
from tests.store.listeners import authenticator, key, organization

Reads = Callable[..., "grpc.aio.UnaryStreamCall[StreamRequest, StreamResponse]"]


@pytest.fixture
def books(store_url: str) -> Books:
    return Books(store_url, prices=PRICED)


@pytest.fixture
def reader(store_url: str) -> tuple[str, str]:
    """The secret and the id of a key that may read."""
    return key(store_url, organization(store_url, "billing"), SCOPE)


@pytest.fixture
async def read(store: Store, reader: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reads]:
    """Begins a stream of a running feed."""
    monkeypatch.setattr(service, "_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(service, "_PAGE", 4)
    async with serving(store) as call:
        yield lambda **request: call(StreamRequest(**request), metadata=bearer(reader[0]))


def bearer(secret: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {secret}"),)


@asynccontextmanager
async def serving(store: Store, identifies: Authenticator | None = None) -> AsyncIterator[Reads]:
    address = f"127.0.0.1:{free_port()}"
    server = await start_feed(UsageFeed(store, identifies or authenticator(store), "EUR"), address)
    async with grpc.aio.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        yield channel.unary_stream(
            f"/{service.SERVICE}/Stream",
            request_serializer=StreamRequest.SerializeToString,
            response_deserializer=StreamResponse.FromString,
        )
    await server.stop(0)


def answer(books: Books, organization: str = "org_a", **changed: object) -> str:
    """The id of the record of a new answer."""
    asked = books.admit(organization_id=organization, **changed)
    books.book(completed(asked.id))
    return asked.id


def ids(messages: list[StreamResponse]) -> list[str]:
    return [message.record.id for message in messages if message.HasField("record")]


async def whole(call: AsyncIterator[StreamResponse]) -> list[StreamResponse]:
    return [message async for message in call]


async def test_every_record_comes_once_in_the_order_of_its_writing(books: Books, read: Reads) -> None:
    written = [answer(books) for _ in range(10)]
    messages = await whole(read())
    assert ids(messages) == written
    assert len({message.cursor for message in messages}) == 10


async def test_each_cursor_goes_on_where_it_stands(books: Books, read: Reads) -> None:
    written = [answer(books) for _ in range(6)]
    for index, message in enumerate(await whole(read())):
        assert ids(await whole(read(cursor=message.cursor))) == written[index + 1 :]


async def test_a_record_says_all_that_the_ledger_knows(books: Books, read: Reads) -> None:
    asked = books.admit(credential_id="key_1", end_user="user-1", stream=True, input_tokens=1000)
    books.book(
        completed(asked.id, input_tokens=1000, output_tokens=50, cached_tokens=400, first_token_ms=7, total_ms=9)
    )
    (message,) = await whole(read())
    record = message.record
    (row,) = books.records()
    assert (record.id, record.request_id, record.organization, record.key) == (
        asked.id,
        asked.request_id,
        "org_a",
        "key_1",
    )
    assert (record.model, record.node, record.outcome, record.stream) == (MODEL, "n1", "completed", True)
    assert (record.input_tokens, record.cached_tokens, record.output_tokens) == (1000, 400, 50)
    assert (record.price.amount, record.price.currency) == ("0.00015", "USD")
    assert json.loads(record.price_terms)["output"] == "0.60"
    assert (record.first_token_ms, record.total_ms, record.end_user) == (7, 9, "user-1")
    assert (record.started_at, record.created_at) == (row["started_at"], row["created_at"])
    assert not record.HasField("tags")


async def test_what_has_no_price_costs_nothing(books: Books, read: Reads) -> None:
    answer(books, model="free")
    (message,) = await whole(read())
    assert (message.record.price.amount, message.record.price.currency) == ("0.00", "EUR")
    assert message.record.price_terms == ""


async def test_a_reader_that_follows_gets_what_is_written_later(books: Books, read: Reads) -> None:
    first = answer(books)
    call = read(follow=True)
    assert (await call.read()).record.id == first
    for _ in range(6):
        written = answer(books)
        assert (await asyncio.wait_for(call.read(), 20)).record.id == written
    call.cancel()


async def test_other_organizations_only_move_the_cursor(books: Books, read: Reads) -> None:
    wanted = [answer(books, name) for name in ("org_a", "org_b", "org_a", "org_b", "org_b", "org_b", "org_b")]
    messages = await whole(read(organizations=["org_a"]))
    assert ids(messages) == [wanted[0], wanted[2]]
    assert not messages[-1].HasField("record")
    assert messages[-1].cursor == wanted[-1]
    later = answer(books)
    assert ids(await whole(read(organizations=["org_a", "org_c"], cursor=messages[-1].cursor))) == [later]


async def test_a_transaction_that_commits_late_is_not_passed(postgres_url: str) -> None:
    """Its record has the smaller position; a reader that had passed it would never see it."""
    books, store = Books(postgres_url), Store(postgres_url)
    early, late = books.admit(), books.admit()
    before = answer(books)

    def seen(after: str) -> list[str]:
        with connect(postgres_url, "read") as connection:
            return [row.id for row in records.read_on(connection, after, 100)]

    with connect(postgres_url) as connection:
        books.ledger.perform(connection, [completed(late.id)])
        books.book(completed(early.id))
        positions = {row["id"]: row["position"] for row in books.records()}
        (late_position,) = connection.execute(
            text("SELECT position FROM usage_records WHERE id = :id"), {"id": late.id}
        ).one()
        assert late_position < positions[early.id]
        assert seen("") == [before]
    assert seen(before) == [late.id, early.id]
    await store.close()


async def test_who_has_read_a_record_that_is_gone_is_told(books: Books, read: Reads) -> None:
    answer(books)
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await whole(read(cursor="gone"))
    assert told.value.code() is grpc.StatusCode.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("secret", "status"),
    [
        (None, grpc.StatusCode.UNAUTHENTICATED),
        ("b3os_sk_short", grpc.StatusCode.UNAUTHENTICATED),
        ("other scope", grpc.StatusCode.PERMISSION_DENIED),
    ],
)
async def test_who_may_not_read_gets_nothing(
    store: Store, store_url: str, books: Books, secret: str | None, status: grpc.StatusCode
) -> None:
    answer(books)
    if secret == "other scope":
        secret = key(store_url, organization(store_url, "other"), "infer:run", "admin")[0]
    async with serving(store) as call:
        with pytest.raises(grpc.aio.AioRpcError) as told:
            await whole(call(StreamRequest(), metadata=bearer(secret) if secret else ()))
    assert told.value.code() is status


async def test_a_key_that_is_revoked_ends_a_stream(
    books: Books, read: Reads, reader: tuple[str, str], store_url: str
) -> None:
    answer(books)
    call = read(follow=True)
    await call.read()
    with connect(store_url) as connection:
        revoke(connection, reader[1])
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await asyncio.wait_for(call.read(), 20)
    assert told.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_no_more_read_at_a_time_than_the_bound(
    books: Books, read: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_READERS", 1)
    answer(books)
    first = read(follow=True)
    await first.read()
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await whole(read())
    assert told.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    first.cancel()
    while True:
        try:
            assert len(await whole(read())) == 1
            break
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


class Endless:
    """A store whose ledger has no end."""

    def __init__(self, row: object) -> None:
        self.row = row
        self.pages = 0

    async def read(self, query: object) -> list[object]:
        self.pages += 1
        return [self.row] * service._PAGE


async def test_what_a_slow_reader_keeps_in_memory_has_a_bound(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read as they are taken: of one who takes nothing more, the feed reads a few."""
    books = Books(sqlite_url)
    answer(books)
    monkeypatch.setattr(service, "_PAGE", 4)
    endless = Endless(SimpleNamespace(**{**books.records()[0], "tags": "x" * 100_000}))
    secret, _ = key(sqlite_url, organization(sqlite_url, "billing"), SCOPE)
    known = Store(sqlite_url)
    async with serving(cast("Store", endless), authenticator(known)) as call:
        reading = call(StreamRequest(), metadata=bearer(secret))
        await reading.read()
        before = -1
        while endless.pages != before:
            before = endless.pages
            await asyncio.sleep(0.5)
        stopped_at = endless.pages
        # It goes on when the reader does.
        while endless.pages < 2 * stopped_at:
            await reading.read()
        reading.cancel()
    await known.close()


def test_a_back_up_restored_on_another_server_comes_before_all_that_is_written_there(postgres_url: str) -> None:
    books = Books(postgres_url)
    old = [answer(books), answer(books)]
    # As if they had been written by a server that has given many more numbers.
    books.execute("UPDATE usage_records SET txid = txid + 1000000000")

    def seen(after: str = "") -> list[str]:
        with connect(postgres_url, "read") as connection:
            return [row.id for row in records.read_on(connection, after, 100)]

    assert seen() == []
    with connect(postgres_url) as connection:
        Adoption().perform(connection, [None])
    new = answer(books)
    assert seen() == [*old, new]
    assert seen(old[-1]) == [new]
    with connect(postgres_url) as connection:
        Adoption().perform(connection, [None])
    assert seen() == [*old, new]
