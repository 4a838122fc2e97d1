"""Every contract's model answers a canary, and a Triton that cannot says why."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from sidecar.backends.failure import BackendError
from sidecar.backends.triton.client import discover
from sidecar.backends.triton.first_token import first_token
from sidecar.config.models import ModelConfig
from sidecar.exchange.canary import Canary, canary_of
from sidecar.exchange.catalog import Catalog
from sidecar.server.models import load_model
from stack.local import SCRIPTED_BY_CONTRACT, SMOLLM2
from stack.net import free_port
from stack.sidecar import Model
from stack.triton import Triton

MODELS = {"smollm2": SMOLLM2, **SCRIPTED_BY_CONTRACT}


async def canary_for(triton: Triton, model: Model) -> Canary:
    served = load_model(ModelConfig.model_validate(model.section()))
    contract = await discover(f"127.0.0.1:{triton.grpc_port}", model.triton_model)
    catalog = Catalog("n1", 3.0, [served]).with_contract(model.name, contract)
    canary = canary_of(catalog, model.name, entropy=os.urandom(18), unix_time=time.time())
    assert canary is not None
    return canary


@pytest.mark.parametrize("name", MODELS)
async def test_a_model_answers(triton: Triton, name: str) -> None:
    canary = await canary_for(triton, MODELS[name])
    await first_token(f"127.0.0.1:{triton.grpc_port}", canary.request, canary.reader, 60)


async def test_a_server_outlives_many(triton: Triton) -> None:
    """It ends where calls are cancelled as they end."""
    for _ in range(16):
        canaries = [await canary_for(triton, MODELS["token_level"]) for _ in range(8)]
        await asyncio.gather(
            *(first_token(f"127.0.0.1:{triton.grpc_port}", one.request, one.reader, 60) for one in canaries)
        )
    assert triton.process.running()


async def test_nobody_answers(triton: Triton) -> None:
    canary = await canary_for(triton, MODELS["token_level"])
    with pytest.raises(BackendError) as raised:
        await first_token(f"127.0.0.1:{free_port()}", canary.request, canary.reader, 60)
    assert raised.value.failure == "unreachable"


async def test_a_model_that_is_not_there_is_one_that_is_not_loaded(triton: Triton) -> None:
    canary = await canary_for(triton, MODELS["token_level"])
    with pytest.raises(BackendError) as raised:
        await first_token(
            f"127.0.0.1:{triton.grpc_port}", canary.request.replace(b"scripted", b"nowhere!"), canary.reader, 60
        )
    assert raised.value.failure == "not_loaded"
