"""Grammars of clients' schemas are made where that can be ended: too dear ones, and those of a client that has left."""

import asyncio
import json
from collections.abc import Callable

import pytest

from sidecar.exchange.check_guides import CheckGuides
from sidecar.fairness import QueueFullError
from sidecar.guidance.guides import Guide, unchecked
from sidecar.killable import CrashedError, OverrunError
from sidecar.responses.errors import ApiError
from sidecar.server.grammars import check_guides, grammar_processes
from tests.core.in_place import InPlace
from tests.hostile.schemas import HOSTILE


def guide(name: str, param: str = "text.format.schema") -> Guide:
    """One that no other test has."""
    return Guide(json.dumps({"const": f"tests/core/server/test_grammars {name}"}), param)


def dear(name: str) -> Guide:
    """One of which it takes some tenths of a second to make a grammar."""
    schema, _ = HOSTILE["many patterns"]
    return Guide(json.dumps({**schema, "required": [name]}), "tools[0].parameters")


async def test_grammars_are_made_in_another_process_and_once() -> None:
    guides = [guide("1"), guide("2")]
    async with grammar_processes() as processes:
        await check_guides(CheckGuides(guides, "client"), processes)
    assert unchecked(guides) == ()


async def test_a_schema_that_cannot_guide_is_refused_by_its_path() -> None:
    impossible = Guide(json.dumps({"not": {"const": "tests/core/server/test_grammars"}}), "tools[3].parameters")
    async with grammar_processes() as processes:
        with pytest.raises(ApiError, match="Decoding cannot be guided by this JSON Schema") as refused:
            await check_guides(CheckGuides([guide("3"), impossible], "client"), processes)
    assert refused.value.param == "tools[3].parameters"


@pytest.mark.parametrize(
    ("failure", "code", "param"),
    [
        (OverrunError("long"), "invalid_request", "text.format.schema"),
        (CrashedError("gone"), "invalid_request", "text.format.schema"),
        (QueueFullError(), "capacity_unavailable", None),
    ],
)
async def test_what_becomes_of_a_process_is_told(failure: Exception, code: str, param: str | None) -> None:
    with pytest.raises(ApiError) as refused:
        await check_guides(CheckGuides([guide("4")], "client"), InPlace(failure))
    assert (refused.value.code, refused.value.param) == (code, param)
    assert unchecked([guide("4")])


async def test_of_several_schemas_none_is_named_for_the_end_of_a_process() -> None:
    several = [guide("5", "tools[0].parameters"), guide("6", "tools[1].parameters")]
    with pytest.raises(ApiError) as refused:
        await check_guides(CheckGuides(several, "client"), InPlace(OverrunError("long")))
    assert refused.value.param == "tools"


async def test_a_client_that_leaves_ends_the_process_that_works_for_it() -> None:
    async with grammar_processes() as processes:
        before = processes.pids
        leaving = asyncio.create_task(check_guides(CheckGuides([dear("a")], "leaving"), processes))
        # The call is made, and takes much longer than this.
        await asyncio.sleep(0.02)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert leaving.cancelled()
        await eventually(lambda: len(before & processes.pids) == len(before) - 1)
        await eventually(lambda: len(processes.pids) == len(before))


async def test_clients_take_turns() -> None:
    done: list[str] = []

    async def ask(client: str, guides: list[Guide]) -> None:
        await check_guides(CheckGuides(guides, client), processes)
        done.append(client)

    async with grammar_processes() as processes:
        many = [asyncio.create_task(ask("attacker", [dear(f"b{index}")])) for index in range(6)]
        await asyncio.sleep(0.02)
        await ask("honest", [guide("7")])
        assert done.count("attacker") < len(many)
        for task in many:
            task.cancel()
        await asyncio.gather(*many, return_exceptions=True)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)
