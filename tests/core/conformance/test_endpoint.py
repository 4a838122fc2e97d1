"""One endpoint's probes one after another: what is replayed, what is left out, and when there is no endpoint at all."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conformance import PROBES, Answer, Endpoint, EndpointError, NoAnswerError, Result, probes_for
from conformance.endpoint import TRIES
from conformance.probes import METADATA, NULLABLE
from conformance.stored import STORED
from sidecar.cli.verify import run_verification
from tests.core.conformance.answers import DOCUMENT, STREAM, answer, refused, streamed, timed, whole
from tests.core.conformance.faults import LONG, called
from tests.core.conformance.shelf import Shelf
from tests.core.conformance.streams import Json, encode, message, reasoning

Answering = Callable[[Json], Answer]
"""Answers a request whose body is a JSON object."""

REPORT = '{"city": "Rome", "sunny": true}'


def sound(body: Json) -> Answer:
    """What an endpoint with everything answers."""
    if body.get("tool_choice"):
        items = [called(0)]
    elif body.get("text"):
        items = [message(0, REPORT)]
    elif body.get("reasoning"):
        items = [reasoning(0, "Let me think."), message(1, "x")]
    else:
        items = [message(0, "x")]
    changes: dict[str, Any] = {"metadata": METADATA} if body.get("metadata") else {}
    return streamed(*items, **changes) if body.get("stream") else whole(*items, **changes)


def lacking(*names: str) -> Answering:
    """An endpoint that lacks these parameters."""

    def answering(body: Json) -> Answer:
        lack = next((name for name in names if body.get(name)), None)
        return sound(body) if lack is None else refused(400, "unsupported_parameter", lack)

    return answering


class Served:
    """Stands in for the network: the requests that came, and their answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answering: Answering = sound) -> None:
        self.bodies: list[Json] = []
        self.answering = answering
        self.shelf = Shelf()
        monkeypatch.setattr("conformance.endpoint.request", self.request)

    def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        path = url.removeprefix("http://host/v1/")
        if path == "models":
            return answer(200, DOCUMENT, b'{"data": [{"id": "first"}, {"id": "second"}]}')
        if path != "responses":
            return self.shelf.look(method, path.removeprefix("responses/"))
        if headers.get("Authorization") == "Bearer wrong":
            return refused(401)
        try:
            asked = json.loads(body or b"")
        except ValueError:
            return refused(400)
        if "input" not in asked or asked["model"] != "first" or headers["Content-Type"] != "application/json":
            return refused(400)
        self.bodies.append(asked)
        return self.shelf.create(asked, self.answering(asked))

    def results(self, key: str | None = None) -> dict[str, Result]:
        return {result.probe: result for result in Endpoint("http://host/v1", key).results("first")}


def outcomes(results: Mapping[str, Result]) -> dict[str, list[str]]:
    """The probes that are not ok, by their outcome."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        if result.outcome != "ok":
            found.setdefault(result.outcome, []).append(name)
    return found


@pytest.mark.parametrize("key", [None, "right"])
def test_every_probe_of_a_sound_endpoint_is_ok(monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    results = Served(monkeypatch).results(key)
    assert list(results) == [probe.name for probe in (*probes_for(key), *STORED)]
    assert outcomes(results) == {}


def test_a_turn_replays_the_output_of_the_turn_before(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(monkeypatch)
    served.results()
    replayed = [body["input"] for body in served.bodies if isinstance(body["input"], list)]
    hello = {"role": "user", "content": "Say hello."}
    again = {"role": "user", "content": "Say it again."}
    answered = message(0, "x")[-1]["item"]
    assert replayed.count([hello, answered, again]) == 2
    thought = [event["item"] for event in (reasoning(0, "Let me think.")[-1], message(1, "x")[-1])]
    assert [{"role": "user", "content": "What is 17 plus 5?"}, *thought, again] in replayed
    call = called(0)[-1]["item"]
    (outputs,) = [items for items in replayed if call in items]
    assert outputs[1:] == [
        call,
        {"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny, 20 degrees."},
    ]


def test_half_a_character_is_replayed_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(monkeypatch, lambda body: sound(body) if body.get("stream") else whole(message(0, "\ud83d")))
    assert served.results()["a second turn, streamed"].outcome == "ok"
    replayed = message(0, "\ud83d")[-1]["item"]
    assert [body for body in served.bodies if isinstance(body["input"], list) and replayed in body["input"]]


def test_a_request_sends_null_for_everything_that_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(monkeypatch)
    served.results()
    (body,) = [body for body in served.bodies if body.get("temperature", 1) is None]
    assert {name for name, value in body.items() if value is None} == set(NULLABLE)


def test_what_is_refused_as_unsupported_is_no_violation_and_neither_is_the_turn_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = Served(monkeypatch, lacking("tools", "reasoning", "text")).results()
    assert outcomes(results) == {"not supported": [probe.name for probe in PROBES if probe.optional]}
    assert all(result.sound for result in results.values())
    assert results["a function tool"].lines() == ["--    a function tool: 400, not supported (No.)"]
    assert results["the output of a call"].lines() == ["--    the output of a call: not supported"]


def test_a_turn_is_not_tried_where_the_one_before_left_nothing_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def answering(body: Json) -> Answer:
        if body.get("tool_choice") == "required":
            return streamed(called(0, '{"city":', status="incomplete"), end="incomplete")
        return refused(500) if body.get("reasoning") else sound(body)

    results = Served(monkeypatch, answering).results()
    assert outcomes(results) == {
        "not tried": ["the output of a call", "a turn after reasoning"],
        "failed": ["reasoning, streamed"],
    }


@pytest.mark.parametrize(("buffered", "failed"), [(TRIES, True), (TRIES - 1, False)])
def test_a_stream_has_to_be_buffered_each_time(monkeypatch: pytest.MonkeyPatch, buffered: int, failed: bool) -> None:
    tries = 0

    def answering(body: Json) -> Answer:
        nonlocal tries
        if not str(body["input"]).startswith("Count") or body["max_output_tokens"] < 64:
            return sound(body)
        tries += 1
        return timed(LONG, [2.0 + (tries > buffered) * at / 10 for at in range(len(LONG))])

    results = Served(monkeypatch, answering).results()
    assert outcomes(results) == ({"failed": ["a long text, streamed"]} if failed else {})
    assert tries == TRIES


def test_no_answer_to_a_later_probe_is_a_violation_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def answering(body: Json) -> Answer:
        if body.get("metadata"):
            raise NoAnswerError("http://host/v1/responses gives no answer: timed out")
        return sound(body)

    result = Served(monkeypatch, answering).results()["metadata"]
    assert result.lines() == [
        "FAIL  metadata: no answer",
        "      http-complete: http://host/v1/responses gives no answer: timed out",
    ]


PAGE = answer(200, {"content-type": "text/html; charset=utf-8"}, b"<html>Welcome</html>")
NOT_THERE = [
    (refused(404), "status 404 (No.): there is no Responses endpoint"),
    (refused(405), "status 405"),
    (answer(301, {"location": "https://host"}), "status 301"),
    (PAGE, "an HTML page, status 200: there is no Responses endpoint"),
    (refused(401), "status 401 (No.): it needs a key"),
]


def run(*, model: str | None = "first", key: str | None = None, as_json: bool = False) -> tuple[int, str, str]:
    """What the command ends with and says: exit status, standard output, standard error."""
    said: list[str] = []
    warned: list[str] = []
    status = run_verification("http://host/v1", key, model, as_json=as_json, say=said.append, warn=warned.append)
    return status, "\n".join(said), "\n".join(warned)


@pytest.mark.parametrize(("first", "words"), NOT_THERE)
def test_a_url_without_an_endpoint_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, first: Answer, words: str
) -> None:
    served = Served(monkeypatch, lambda body: first)
    status, out, sentence = run()
    assert (status, out, sentence.count("\n")) == (2, "", 0)
    assert sentence.startswith("error: POST http://host/v1/responses is answered with ")
    assert words in sentence
    assert len(served.bodies) == 1
    document = json.loads(run(as_json=True)[1])
    assert (document["sound"], document["results"]) == (False, [])
    assert f"error: {document['error']}" == sentence


@pytest.mark.parametrize("models", [PAGE, refused(404), answer(200, DOCUMENT, b'{"data": []}')])
def test_an_endpoint_without_models_needs_one_named(monkeypatch: pytest.MonkeyPatch, models: Answer) -> None:
    monkeypatch.setattr("conformance.endpoint.request", lambda *arguments: models)
    with pytest.raises(EndpointError, match=r"GET http://host/v1/models names no model .* or name a model"):
        Endpoint("http://host/v1/", None).first_model()


@pytest.mark.parametrize("key", ["a\nb", "ключ"])
def test_a_key_that_no_header_holds_is_refused_and_not_shown(key: str) -> None:
    status, _, sentence = run(key=key)
    assert (status, key in sentence) == (2, False)


def test_a_report_has_a_line_for_each_probe_and_a_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    Served(monkeypatch, lacking("reasoning"))
    status, out, _ = run(model=None)
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == "POST http://host/v1/responses, model first"
    assert lines[2] == "ok    a text, streamed: 200, 9 events"
    assert lines[-2:] == [
        "not supported: reasoning, streamed; a turn after reasoning",
        f"{len(PROBES) + len(STORED)} probes, 0 violations, 0 warnings, 2 not supported",
    ]


def test_a_failed_probe_is_told_with_the_rule_and_the_servers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    Served(monkeypatch, lambda body: refused(500) if body.get("tool_choice") == "required" else sound(body))
    status, out, _ = run()
    assert status == 1
    assert "FAIL  parallel calls: 500\n      http-status: the status is 500 instead of 200: No.\n" in out
    assert out.splitlines()[-2:] == [
        "not tried: the output of a call",
        f"{len(PROBES) + len(STORED)} probes, 3 violations, 0 warnings, 1 not tried: http-status",
    ]


def test_a_fault_of_every_event_is_told_in_a_few_lines_and_in_full_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    unnumbered = [{**event, "sequence_number": None} for event in LONG]
    result = Served(monkeypatch, lambda body: answer(200, STREAM, encode(unnumbered))).results()["a text, streamed"]
    assert result.lines()[1:] == [
        "      sequence-number (event 0): sequence_number is None instead of 0",
        "      sequence-number (event 1): sequence_number is None instead of 1",
        "      sequence-number (event 2): sequence_number is None instead of 2",
        f"      sequence-number: {len(LONG) - 3} more",
    ]
    assert len(result.to_json()["violations"]) == len(LONG)


def test_json_holds_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def answering(body: Json) -> Answer:
        return refused(503) if body.get("text") else lacking("reasoning")(body)

    Served(monkeypatch, answering)
    status, out, warned = run(as_json=True)
    document: dict[str, Any] = json.loads(out)
    results = {result.pop("probe"): result for result in document.pop("results")}
    assert (status, warned) == (1, "")
    assert document == {
        "url": "http://host/v1/responses",
        "model": "first",
        "sound": False,
        "error": None,
        "not_supported": ["reasoning, streamed", "a turn after reasoning"],
        "not_tried": [],
    }
    assert list(results) == [probe.name for probe in (*PROBES, *STORED)]
    assert results["reasoning, streamed"] == {
        "outcome": "not supported",
        "expected": "200",
        "status": 400,
        "server_message": "No.",
        "events": 0,
        "sound": True,
        "violations": [],
    }
    assert results["a JSON schema, whole"] == {
        "outcome": "failed",
        "expected": "200",
        "status": 503,
        "server_message": "No.",
        "events": 0,
        "sound": False,
        "violations": [
            {
                "rule": "http-status",
                "message": "the status is 503 instead of 200: No.",
                "event_index": None,
                "level": "violation",
            }
        ],
    }


def test_probes_have_names_of_their_own_and_follow_the_ones_they_replay() -> None:
    names = [probe.name for probe in probes_for("right")]
    assert len(set(names)) == len(names)
    for place, probe in enumerate(PROBES):
        assert probe.before is None or probe.before.probe in names[:place]
