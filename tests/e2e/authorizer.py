"""The part of the sidecar that Envoy asks who a request is from, alone and without a store, for tests of Envoy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from envoy.service.auth.v3.external_auth_pb2_grpc import AuthorizationServicer, add_AuthorizationServicer_to_server
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import (
    ExternalProcessorServicer,
    add_ExternalProcessorServicer_to_server,
)
from grpc_health.v1 import health, health_pb2_grpc

from sidecar.identity.ext_authz import AuthorizationService
from sidecar.identity.identity import SCOPES, Identity
from sidecar.identity.secret import Kind, Secret, mint
from sidecar.identity.trusted import Trusted
from sidecar.responses.caller import Caller
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES

KEY = mint(Kind.KEY).text
"""The one key that is known."""


class _OneKey:
    async def identify(self, secret: Secret) -> Identity:
        if secret.text != KEY:
            raise ApiError("unauthorized", "The credential is unknown.")
        return Identity(Caller("org_1", "key_1"), frozenset(SCOPES))


class Authorizer(AuthorizationServicer):  # type: ignore[misc]
    """Answers as the sidecar does, each time after ``delay`` seconds."""

    def __init__(self, trusted: Trusted | None = None, delay: float = 0.0) -> None:
        self._delay = delay
        self.asked = 0
        self._service = AuthorizationService(SURFACES, _OneKey(), trusted)  # type: ignore[arg-type]

    def Check(self, request: CheckRequest, _context: object) -> CheckResponse:
        self.asked += 1
        time.sleep(self._delay)
        return asyncio.run(self._service.Check(request, None))


@contextmanager
def serving(socket: Path, authorizer: Authorizer, processor: ExternalProcessorServicer | None = None) -> Iterator[None]:
    """A worker's socket with these services on it, and its health; without a ``processor`` there is no ext_proc."""
    server = grpc.server(ThreadPoolExecutor(4))
    add_AuthorizationServicer_to_server(authorizer, server)
    if processor is not None:
        add_ExternalProcessorServicer_to_server(processor, server)
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(0)
