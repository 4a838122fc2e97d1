"""The cases in ``tests/data``: a folder each, with a request, what the model writes, and what must come of them.

``request.json`` is sent twice, once for a stream and once for a whole response. ``generation.json`` names the contracts
that the case is about, and tells what the model writes (:data:`tests.core.goldens.triton.Generation`). The clock, the
ids and the seed are the same every time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sidecar.exchange.catalog import Catalog
from sidecar.exchange.check_guides import CheckGuides
from sidecar.exchange.commands import CallUpstream, Command, SendBody, SendHead
from sidecar.exchange.events import Answered, RequestComplete
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.fetch_images import FetchImages
from sidecar.exchange.plan import Prepare, TritonPlan
from sidecar.images.data_url import read_data_url
from sidecar.images.decode import decode
from sidecar.responses.errors import ApiError
from sidecar.responses.reply import Reply
from sidecar.surfaces import SURFACES
from sidecar.surfaces.endpoints import Operation
from tests.core import kit
from tests.core.goldens.models import DATA, TEMPLATES, model, vocabulary
from tests.core.goldens.triton import Generation, readable_call, stream

CASES = sorted(path.parent for path in DATA.glob("*/request.json"))
_GIVEN = {"request.json", "generation.json"}
_HEADERS = {
    ":method": "POST",
    "content-type": "application/json",
    "x-request-id": "5f0c7b0e-0000-4000-8000-000000000001",
}
_HEAD_AT, _FIRST_TOKEN_AT, _END_AT = 100.0, 101.0, 102.0
_UNIX_TIME = 1_800_000_000.0


def kept_files(case: Path) -> dict[str, str]:
    """The expected files that lie beside a request, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in case.iterdir() if path.name not in _GIVEN}


def given(case: Path) -> tuple[dict[str, Any], Generation]:
    """The request of a case, and what the model writes."""
    return json.loads((case / "request.json").read_bytes()), json.loads((case / "generation.json").read_bytes())


def expected_files(case: Path) -> dict[str, str]:
    """The text of each file that must lie beside a request."""
    request, generation = given(case)
    files = _prompt_files(request, generation["contracts"][0])
    for contract in generation["contracts"]:
        for surface in SURFACES:
            # Those that take it have the same asked of Triton, but for their own limits: the first one's is kept.
            files = _answer_files(surface, contract, request, generation) | files
    return files


def _prompt_files(request: dict[str, Any], contract: str) -> dict[str, str]:
    """What the model reads, by each chat template."""
    files: dict[str, str] = {}
    for template in TEMPLATES:
        played = Played("node", contract, request, template)
        if played.plan is None and not files:
            played = Played("bureau", contract, request, template)
        if played.plan is not None:
            ids = list(played.plan.generation.prompt_ids)
            files[f"prompt.{template}.txt"] = vocabulary().decode(ids, skip_special_tokens=False)
        elif files:
            # One template takes what the other does not.
            files[f"prompt.{template}.refusal.json"] = _pretty(_whole_answer(played.commands))
    return files


def _answer_files(surface: str, contract: str, request: dict[str, Any], generation: Generation) -> dict[str, str]:
    streamed = Played(surface, contract, {**request, "stream": True})
    whole = Played(surface, contract, request)
    files = {f"triton.{contract}.json": readable_call(whole.call)} if whole.call else {}
    for played in (streamed, whole):
        played.feed(contract, generation)
    if isinstance(streamed.commands[0], SendHead):
        files[f"events.{surface}.{contract}.sse"] = kit.sent(streamed.commands).decode()
    else:
        assert streamed.commands == whole.commands, "what fails before its first token is told in one way"
    files[f"response.{surface}.{contract}.json"] = _pretty(_whole_answer(whole.commands))
    return files


class Played:
    """A request as far as the upstream's call, or its refusal; ``feed`` goes on from there."""

    def __init__(self, surface: str, contract: str, request: dict[str, Any], template: str = "native") -> None:
        catalog = Catalog("node-1", 15.0, [model(template, contract)])
        asks = (Prepare, CheckGuides, FetchImages)
        self.exchange = Exchange(SURFACES[surface], catalog, asks, entropy=bytes(range(18)))
        self.plan: TritonPlan | None = None
        self.call: CallUpstream | None = None
        body = json.dumps(request).encode()
        endpoints = SURFACES[surface].endpoints
        path = next(one.path for one in endpoints if one.operation is Operation.CREATE_RESPONSE)
        event = RequestComplete({**_HEADERS, ":path": path}, body, len(body), _HEAD_AT, _UNIX_TIME, _HEAD_AT)
        self.commands: list[Command] = self.exchange.handle(event)
        while self.commands and isinstance(self.commands[0], Prepare | CheckGuides | FetchImages):
            self.commands = self.exchange.handle(self._perform(self.commands[0]))
        if isinstance(self.commands[0], CallUpstream):
            self.call = self.commands[0]

    def _perform(self, ask: Prepare | CheckGuides | FetchImages) -> Answered:
        result: object
        try:
            if isinstance(ask, Prepare):
                result = ask.plan()
                assert isinstance(result, TritonPlan)
                self.plan = result
            elif isinstance(ask, CheckGuides):
                result = None
                kit.check(ask.guides)
            else:
                result = ask.body([decode(read_data_url(ref.url, 1000), 1000) for ref in ask.refs])
        except ApiError as error:
            result = error
        return Answered(ask, result, _HEAD_AT)

    def feed(self, contract: str, generation: Generation, *, at_once: bool = False) -> None:
        """Let the upstream answer, response by response or ``at_once``; nothing where it has not been called."""
        if self.plan is None or self.call is None:
            return
        frames = stream(contract, generation, self.plan.input_tokens)
        self.commands = []
        for data in [b"".join(frames)] if at_once else frames:
            self.commands += kit.upstream(self.exchange, data, _FIRST_TOKEN_AT)
        self.commands += self.exchange.handle(kit.whole_end(_END_AT))


def _whole_answer(commands: list[Command]) -> dict[str, Any]:
    if isinstance(commands[0], Reply):
        reply = commands[0]
        return {"status": reply.status, "headers": dict(reply.headers), "body": json.loads(reply.body)}
    head, body, _ = commands
    assert isinstance(head, SendHead) and isinstance(body, SendBody)
    return {"status": 200, "headers": dict(head.headers), "body": json.loads(body)}


def _pretty(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
