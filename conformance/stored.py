"""Responses that an endpoint stores: one is made, told again, listed, continued and deleted.

An endpoint that stores nothing says so to the first request, by a refusal or in its answer, and is asked no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from conformance.answers import check_answer, check_head
from conformance.client import Answer, NoAnswerError
from conformance.documents import check_error_body
from conformance.probe import ANSWER_LIMIT, OK, Probe
from conformance.rules import Violation
from conformance.shapes import ARRAY, FLAG, NAME, Json, misfits
from conformance.verification import Result
from conformance.words import server_message

HELLO = "Say hello."
AGAIN = "Say it again."
_MOST_PAGES = 20
_ASK = {"store": True, "max_output_tokens": ANSWER_LIMIT}

Send = Callable[[str, str, bytes | None], Answer]
"""Sends a request: its method, what follows ``/responses`` in the URL, its body."""

STORE = Probe("a response to store", {**_ASK, "input": HELLO}, optional=("store",))
RETRIEVE = Probe("a stored response", b"")
LIST = Probe("its input items", b"")
CONTINUE = Probe("a turn that continues it", {**_ASK, "input": AGAIN}, optional=("previous_response_id",))
PAGES = Probe("the input items of that turn, one by one", b"")
DELETE = Probe("its deletion", b"")
GONE = Probe("a deleted response", b"", statuses=(404,))
CONTINUE_GONE = Probe("a turn that continues a deleted response", {**_ASK, "input": AGAIN}, statuses=(400, 404))
STORED = (STORE, RETRIEVE, LIST, CONTINUE, PAGES, DELETE, GONE, CONTINUE_GONE)


def stored_results(send: Send, model: str) -> Iterator[Result]:
    """The outcome of each of :data:`STORED`; where the endpoint stores nothing, of the first alone."""
    result, first = _create(send, STORE, model)
    if result.skipped is not None or (first is not None and first.get("store") is not True):
        yield replace(result, skipped="not supported")
        return
    if first is None:
        yield result
        yield from (Result(probe.name, probe.expected, skipped="not tried") for probe in STORED[1:])
        return
    yield result
    path = _path(first)
    yield _look(send, RETRIEVE, "GET", path, partial(_check_as_made, first))
    yield _look(send, LIST, "GET", f"{path}/input_items", _check_list)
    result, second = _create(send, CONTINUE, model, first.get("id"))
    yield result
    if second is None:
        yield Result(PAGES.name, PAGES.expected, skipped=result.skipped or "not tried")
    else:
        yield _turn_pages(send, f"{_path(second)}/input_items")
    yield _look(send, DELETE, "DELETE", path, partial(_check_deletion, first))
    yield _look(send, GONE, "GET", path, lambda document: ())
    yield _create(send, CONTINUE_GONE, model, first.get("id"))[0]
    if second is not None:
        # Nothing is left behind.
        _look(send, DELETE, "DELETE", _path(second), lambda document: ())


def _path(response: Json) -> str:
    return f"/{quote(str(response.get('id')), safe='')}"


def _create(send: Send, probe: Probe, model: str, previous: Any = None) -> tuple[Result, Json | None]:
    """Make a response, which continues ``previous``; the outcome, and the response if there is one."""
    if previous is not None:
        assert not isinstance(probe.body, bytes)
        body = {**probe.body, "previous_response_id": previous}
        probe = probe._replace(body=body, check=partial(_check_continues, previous))
    try:
        answer = send("POST", "", probe.content(model))
    except NoAnswerError as error:
        return _unanswered(probe, error), None
    verdict = check_answer(probe, answer)
    skipped: Any = "not supported" if verdict.unsupported else None
    result = Result(probe.name, probe.expected, answer.status, 0, verdict.violations, verdict.refusal, skipped)
    return result, verdict.response


def _look(send: Send, probe: Probe, method: str, path: str, check: Callable[[Any], Any]) -> Result:
    """Ask about a response; ``check`` finds what is wrong with the document."""
    try:
        answer = send(method, path, None)
    except NoAnswerError as error:
        return _unanswered(probe, error)
    violations = list(check_head(probe, answer))
    if answer.status not in OK:
        violations += check_error_body(answer.body)
        return Result(probe.name, probe.expected, answer.status, 0, violations, server_message(answer.body))
    return Result(probe.name, probe.expected, answer.status, 0, [*violations, *check(_document(answer))])


def _turn_pages(send: Send, path: str) -> Result:
    """All input items of the second turn, a page for each."""
    items, after = list[Any](), ""
    for _ in range(_MOST_PAGES):
        pages = list[Any]()

        def check(page: Any, pages: list[Any] = pages) -> Iterator[Violation]:
            pages.append(page)
            yield from _check_list(page, most=1)

        result = _look(send, PAGES, "GET", f"{path}?order=asc&limit=1{after}", check)
        if result.violations:
            return result
        (page,) = pages
        items += page["data"]
        after = f"&after={quote(str(page['last_id']), safe='')}"
        if not page["has_more"]:
            break
    texts = [_text_of(item) for item in items]
    if len(items) < 3 or (texts[0], texts[-1]) != (HELLO, AGAIN):
        words = (
            f"{len(items)} items, from {texts[:1]} to {texts[-1:]}, are not both turns' input with the answer between"
        )
        return replace(result, violations=[Violation("input-items", words)])
    if len({item["id"] for item in items}) < len(items):
        return replace(result, violations=[Violation("input-items", "two items have the same id")])
    return result


def _check_as_made(made: Json, found: Any) -> Iterator[Violation]:
    changed = [name for name in made if not isinstance(found, dict) or found.get(name) != made[name]]
    if changed:
        yield Violation("stored-as-made", f"{', '.join(sorted(changed))} came back otherwise")


def _check_continues(previous: str, response: Json) -> Iterator[Violation]:
    if response.get("previous_response_id") != previous:
        yield Violation("continues", f"previous_response_id is {response.get('previous_response_id')!r:.80}")


def _check_deletion(made: Json, document: Any) -> Iterator[Violation]:
    told = document if isinstance(document, dict) else {}
    if (told.get("id"), told.get("deleted")) != (made.get("id"), True):
        yield Violation("deletion", f"the answer is {document!r:.80}")


def _check_list(document: Any, most: int = 20) -> Iterator[Violation]:
    page = document if isinstance(document, dict) else {}
    faults = misfits(page, {"data": ARRAY, "has_more": FLAG, "first_id": NAME, "last_id": NAME})
    if page.get("object") != "list":
        faults.append("'object' is not \"list\"")
    if not faults:
        ids = [item.get("id") if isinstance(item, dict) else None for item in page["data"]]
        if not 1 <= len(ids) <= most:
            faults.append(f"{len(ids)} items, 1 to {most} were asked for")
        elif (ids[0], ids[-1]) != (page["first_id"], page["last_id"]):
            faults.append("first_id and last_id are not those of the items")
    for words in faults:
        yield Violation("input-items", words)


def _text_of(item: Any) -> Any:
    """The text of a message with one part; ``None`` of anything else."""
    content = item.get("content")
    return content[0].get("text") if isinstance(content, list) and len(content) == 1 else content


def _document(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        return None


def _unanswered(probe: Probe, error: NoAnswerError) -> Result:
    return Result(probe.name, probe.expected, violations=[Violation("http-complete", str(error))])
