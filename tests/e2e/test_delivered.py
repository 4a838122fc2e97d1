"""A client that stops reading, and then leaves: it pays for what was handed to Envoy, where that holds it up."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sidecar.admission.slots import SLOT_BYTES, read_slot
from sidecar.envoy.settings import Wire
from stack.local import SCRIPTED, LocalStack
from stack.triton import Triton
from tests.e2e.client import Client, eventually, script
from tests.e2e.ledger import LocalLedger

# More than the buffers between the model and the client hold.
RESPONSES, PIECE = 3000, " " * 8000 + "a"
DELTA = b"event: response.output_text.delta\n"


@pytest.fixture(params=["tunnel", "direct"])
def stack(
    request: pytest.FixtureRequest, triton: Triton, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStack]:
    wire: Wire = request.param
    model = replace(SCRIPTED, context_length=10**8)
    address = f"127.0.0.1:{triton.grpc_port}"
    with LocalStack(
        tmp_path_factory.mktemp("unread"), models=[model], triton_address=address, wire=wire, workers=1
    ) as stack:
        yield stack


class Still:
    """Tells when the only answer under way has come no further for fifty looks."""

    def __init__(self, stack: LocalStack) -> None:
        (self._file,) = (stack.run_dir / "state").glob("*.slots")
        self._tokens = self._looks = 0

    def __call__(self) -> int:
        data = self._file.read_bytes()
        slots = (read_slot(data[at : at + SLOT_BYTES]) for at in range(4096, len(data), SLOT_BYTES))
        (tokens,) = (slot.delivered.output_tokens for slot in slots if slot is not None)
        self._looks = self._looks + 1 if tokens == self._tokens else 0
        self._tokens = tokens
        return tokens if self._looks >= 50 else 0


async def test_who_stops_reading_and_leaves_pays_for_what_was_handed_over(stack: LocalStack) -> None:
    body = json.dumps(script({"repeat": [RESPONSES, PIECE, 0.0005]}, stream=True)).encode()
    head = f"POST /v1/infer/responses HTTP/1.1\r\nhost: n\r\nauthorization: Bearer {stack.api_key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", stack.port))
        client.sendall(head.encode() + body)
        received = b""
        while received.count(DELTA) < 5:
            received += client.recv(65536)
        request_id = re.search(rb"x-request-id: ([^\r]+)", received)
        assert request_id is not None
        handed_over = await eventually(Still(stack), 60)
    record = await LocalLedger(stack).record(request_id[1].decode())
    assert (record["outcome"], record["output_tokens"]) == ("client_gone", handed_over)
    each = await tokens_of(stack, PIECE)
    assert received.count(DELTA) * each <= handed_over < RESPONSES * each


async def tokens_of(stack: LocalStack, piece: str) -> int:
    """How many tokens a response of the model has that holds ``piece``."""
    async with Client(stack) as client:
        answer = await client.ask(script(piece, {"no_end_id": True}))
        return int(answer.json()["usage"]["output_tokens"])
