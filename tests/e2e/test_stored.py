"""Stored responses on the bureau surface, behind Envoy: continued, fetched, listed and deleted as OpenAI's SDK does."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from stack.first_key import command
from stack.local import LocalStack
from tests.e2e.bureau import SLUG, make_client, said
from tests.e2e.client import eventually

# The CPU model, whose prompt counts what it is told.
MODEL = "local/smollm2-135m"


@pytest.fixture(scope="module")
def client(stack: LocalStack) -> Iterator[Any]:
    with make_client(stack, stack.project_key) as client:
        yield client


def test_a_turn_continues_what_was_stored(client: Any) -> None:
    first = client.responses.create(model=MODEL, input="My name is Ada.", max_output_tokens=8, store=True)
    assert (first.store, first.previous_response_id) == (True, None)
    second = client.responses.create(
        model=MODEL, input="What is my name?", max_output_tokens=4, previous_response_id=first.id
    )
    assert (second.store, second.previous_response_id) == (True, first.id)
    whole: Any = [
        {"role": "user", "content": "My name is Ada."},
        *(item.model_dump(exclude_none=True) for item in first.output),
        {"role": "user", "content": "What is my name?"},
    ]
    alone = client.responses.create(model=MODEL, input=whole, max_output_tokens=4)
    assert alone.usage is not None and second.usage is not None
    assert second.usage.input_tokens == alone.usage.input_tokens
    listed = list(client.responses.input_items.list(second.id, order="asc", limit=1))
    texts = [item.content[0].text for item in listed]
    assert texts == ["My name is Ada.", first.output_text, "What is my name?"]
    assert [item.id for item in listed] == [
        item.id for item in reversed(list(client.responses.input_items.list(second.id)))
    ]


def test_instructions_are_not_carried_over(client: Any) -> None:
    first = client.responses.create(
        model=MODEL, input="Hi", instructions="Be short. " * 20, max_output_tokens=2, store=True
    )
    second = client.responses.create(model=MODEL, input="Hi", max_output_tokens=2, previous_response_id=first.id)
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens < first.usage.input_tokens
    assert client.responses.retrieve(first.id).instructions == "Be short. " * 20
    assert second.instructions is None


def test_what_was_stored_comes_back_as_it_was(client: Any) -> None:
    made = client.responses.create(**said("Hello"), store=True, metadata={"a": "b"})
    assert client.responses.retrieve(made.id).model_dump() == made.model_dump()
    client.responses.delete(made.id)
    for gone in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError) as refused:
            gone(made.id)
        assert refused.value.code == "not_found"


def test_nothing_is_stored_that_was_not_to_be(client: Any) -> None:
    first = client.responses.create(**said("one"), store=True)
    for made in (
        client.responses.create(**said("two")),
        client.responses.create(**said("three"), previous_response_id=first.id, store=False),
    ):
        assert made.store is False
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)


def test_a_stream_is_stored_when_it_is_over_and_continued_at_once(client: Any) -> None:
    with client.responses.stream(**said("One", " two"), store=True) as stream:
        events = list(stream)
    told = [event.response for event in events if hasattr(event, "response")]
    assert {response.store for response in told} == {False}
    second = client.responses.create(**said("three"), previous_response_id=told[-1].id)
    kept = client.responses.retrieve(told[-1].id)
    assert (kept.store, kept.output_text, kept.status) == (True, "One two", "completed")
    assert second.previous_response_id == kept.id


def test_right_after_its_end_a_stream_is_there(client: Any) -> None:
    for look in (client.responses.retrieve, client.responses.input_items.list):
        *_, last = client.responses.create(**said("One"), store=True, stream=True)
        found = look(last.response.id).to_dict()
        assert (found.get("status"), found.get("has_more")) in {("completed", None), (None, False)}


def test_while_it_streams_it_says_so_and_can_be_deleted(client: Any) -> None:
    stream = client.responses.create(
        **said("One", {"sleep": 1.0}, " two", {"sleep": 1.0}, " three"), store=True, stream=True
    )
    id_ = next(iter(stream)).response.id
    found = client.responses.with_raw_response.retrieve(id_)
    assert json.loads(found.text) == {"id": id_, "object": "response", "status": "in_progress"}
    assert client.responses.with_raw_response.delete(id_).status_code == 200
    assert [event.type for event in stream][-1] == "response.completed"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(id_)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(**said("x"), previous_response_id=id_)


def test_a_stream_that_breaks_leaves_nothing(client: Any) -> None:
    stream = client.responses.create(**said("some", {"error": "cuda failure"}), store=True, stream=True)
    id_ = next(iter(stream)).response.id
    with pytest.raises(openai.APIError):
        list(stream)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(**said("x"), previous_response_id=id_)


def test_another_environment_sees_nothing(stack: LocalStack, client: Any) -> None:
    made = client.responses.create(**said("Hello"), store=True)
    other = command(
        stack.sidecar.config, "keys", "create", "local", "--project", "elsewhere", "--environment", "production"
    )
    with make_client(stack, other["secret"]) as stranger:
        for attempt in (stranger.responses.retrieve, stranger.responses.delete, stranger.responses.input_items.list):
            with pytest.raises(openai.NotFoundError):
                attempt(made.id)
        with pytest.raises(openai.NotFoundError) as theirs:
            stranger.responses.create(**said("x"), previous_response_id=made.id)
    with pytest.raises(openai.NotFoundError) as unknown:
        client.responses.create(**said("x"), previous_response_id="resp_unknown")
    told = [error.value.body for error in (theirs, unknown)]
    for body, id_ in zip(told, (made.id, "resp_unknown"), strict=True):
        assert isinstance(body, dict)
        assert body["message"] == f"There is no response {id_}."
        assert (body["code"], body["param"]) == ("not_found", "previous_response_id")


def test_a_page_that_cannot_be_is_refused(client: Any) -> None:
    made = client.responses.create(**said("Hello"), store=True)
    for query in ({"limit": 101}, {"order": "up"}, {"after": "msg_x"}):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.input_items.list(made.id, **query)
        assert refused.value.param == next(iter(query))


def test_a_long_conversation_is_prepared_elsewhere(client: Any) -> None:
    """Of reasoning that was sealed by another service the model sees nothing, so that it fits."""
    sealed: Any = {"type": "reasoning", "summary": [], "encrypted_content": "x" * 50_000}
    turn = {"role": "user", "content": said("one")["input"]}
    first = client.responses.create(model=SLUG, input=[sealed, turn], store=True)
    second = client.responses.create(**said("two"), previous_response_id=first.id)
    assert (first.output_text, second.output_text) == ("one", "two")
    kinds = [item.type for item in client.responses.input_items.list(second.id, order="asc")]
    assert kinds == ["reasoning", "message", "message", "message"]


def test_where_zero_retention_is_required_both_are_refused(stack: LocalStack) -> None:
    made = command(stack.sidecar.config, "keys", "create", "local", "--project", "secret", "--environment", "e")
    with make_client(stack, made["secret"]) as client:
        kept = client.responses.create(**said("Hello"), store=True)
        command(stack.sidecar.config, "stored", "zero-retention", "local", "on", "--project", "secret")
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(kept.id)
        for parameters in ({"store": True}, {"store": True, "stream": True}, {"previous_response_id": kept.id}):
            with pytest.raises(openai.PermissionDeniedError) as refused:
                client.responses.create(**said("x"), **parameters)
            assert refused.value.code == "policy_denied"
        assert client.responses.create(**said("x")).store is False


async def test_no_text_of_a_conversation_is_readable_in_a_file(stack: LocalStack, client: Any) -> None:
    """In none: the store and its journal, what workers note for each other, configurations, logs."""
    word = f"quokka{secrets.token_hex(4)}"
    heard: Any = {"instructions": word, "metadata": {"a": word}, "store": True}
    first = client.responses.with_raw_response.create(**said(f" {word}"), **heard)
    *_, last = client.responses.create(**said(f" {word}"), **heard, stream=True, previous_response_id=first.parse().id)
    assert word in client.responses.retrieve(last.response.id).output_text
    assert word in str(list(client.responses.input_items.list(last.response.id)))
    for steps, parameters in (([f" {word}", {"error": word}], {}), ([word], {"previous_response_id": word})):
        with pytest.raises(openai.APIError):
            client.responses.create(**said(*steps), **heard, **parameters)
    client.responses.delete(first.parse().id)
    # Envoy writes its log from time to time.
    request_id = first.headers["x-request-id"]
    await eventually(lambda: request_id in (stack.run_dir / "access.log").read_text(), 30)
    kept = {path.name: path.read_bytes() for path in stack.run_dir.rglob("*") if path.is_file()}
    told = {name for name, content in kept.items() if request_id.encode() in content}
    assert {"access.log", "sidecar.log"} <= told
    assert last.response.id.encode() in b"".join(kept[name] for name in kept if name.startswith("ledger.db"))
    assert {name for name, content in kept.items() if word.encode() in content} == set()
