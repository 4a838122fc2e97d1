"""Asks a running Triton about itself, over gRPC. Only start-up and ``check`` use it; requests go through Envoy."""

from __future__ import annotations

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from sidecar.backends.triton import discovery
from sidecar.backends.triton.contracts.contract import Contract

_SECONDS = 5.0


class TritonUnreachableError(Exception):
    """Triton or one of its models does not answer; the message is for the operator."""


async def discover(address: str, model: str) -> Contract:
    """The contract of ``model`` on the Triton at ``address`` (``host:port``).

    Raises:
        TritonUnreachableError: no answer, or the model is not loaded there.
        discovery.UnknownContractError: its tensors fit no contract.
    """
    async with grpc.aio.insecure_channel(address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        try:
            metadata = await stub.ModelMetadata(service_pb2.ModelMetadataRequest(name=model), timeout=_SECONDS)
            config = await stub.ModelConfig(service_pb2.ModelConfigRequest(name=model), timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND or error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                raise TritonUnreachableError(f"Triton at {address} does not serve model {model}") from error
            raise TritonUnreachableError(f"Triton at {address} does not answer ({error.code().name})") from error
    return discovery.recognise(metadata, config.config)
