"""The catalog's contracts follow what Triton's models speak."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from sidecar.backends.triton import errors
from sidecar.backends.triton.client import TritonUnreachableError
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.exchange.events import ClientGone
from sidecar.extproc.sessions import Sessions
from sidecar.server import contracts
from sidecar.server.contracts import Contracts
from sidecar.surfaces import SURFACES
from tests.core import kit

SILENT = TritonUnreachableError("Triton does not answer")
FIRST, SECOND = kit.model().contract, kit.image_model().contract


class Triton:
    """Answers with what the test says."""

    def __init__(self) -> None:
        self.answer: Contract | Exception = SILENT
        self.asked = asyncio.Semaphore(0)

    async def discover_all(self, address: str, models: list[str]) -> list[Contract | Exception]:
        self.asked.release()
        return [self.answer for _ in models]

    async def is_asked(self) -> None:
        """The next time, once what it answers has been taken."""
        await asyncio.wait_for(self.asked.acquire(), 10)
        await asyncio.sleep(0)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[Triton]:
    """A Triton that is asked as often as can be."""
    triton = Triton()
    monkeypatch.setattr(contracts, "discover_all", triton.discover_all)
    for name in ("_LOOK_SECONDS", "_RETRY_SECONDS", "_SHORTEST_GAP_SECONDS"):
        monkeypatch.setattr(contracts, name, 0.0)
    yield triton


async def test_a_contract_is_asked_for_until_it_is_told_and_then_kept_up_to_date(
    triton: Triton, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sessions = Sessions(kit.catalog(), SURFACES, {}, ())
    assert FIRST is not None
    assert SECOND is not None
    keeping = asyncio.create_task(Contracts("host:1").keep(sessions))
    for answer in (SILENT, FIRST, SILENT, SECOND):
        triton.answer = answer
        await triton.is_asked()
        await triton.is_asked()
        (model,) = sessions.catalog.triton_models()
        assert model.contract == (FIRST if answer is SILENT else answer)
    keeping.cancel()
    # Each change is told once.
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING", "INFO"]


async def test_where_there_is_no_triton_nobody_is_asked(triton: Triton) -> None:
    await asyncio.wait_for(Contracts(None).keep(Sessions(kit.catalog(), SURFACES, {}, ())), 10)
    assert triton.asked.locked()


@pytest.mark.parametrize(
    ("words", "doubtful"),
    [
        ("Request for unknown model: 'm' is not found", True),
        ("unexpected inference input 'input_ids' for model 'm'", True),
        ("Exceeds maximum queue size", False),
    ],
)
async def test_a_failure_that_tells_of_another_model_has_it_looked_at_at_once(
    triton: Triton, monkeypatch: pytest.MonkeyPatch, words: str, doubtful: bool
) -> None:
    monkeypatch.setattr(contracts, "_RETRY_SECONDS", 1000.0)
    keeper = Contracts("host:1")
    keeping = asyncio.create_task(keeper.keep(Sessions(kit.catalog(), SURFACES, {}, ())))
    await triton.is_asked()
    exchange = kit.exchange()
    exchange.report.backend_error = errors.classify_message(words)
    exchange.handle(ClientGone())
    keeper.observe(exchange, ClientGone(), [])
    for _ in range(20):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert triton.asked.locked() is not doubtful
    keeping.cancel()
