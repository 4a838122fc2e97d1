"""Asks a running Triton about its models, over gRPC; clients' requests go through Envoy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import grpc

from sidecar.backends.triton import discovery
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.backends.triton.contracts.tensors import parameter
from sidecar.backends.triton.protocol import SERVICE, model_config_pb2, service_pb2

_SECONDS = 5.0
CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0),)
"""Triton is asked as Envoy asks it: without the proxies that the environment may name."""
# A model is used once it is this.
_READY = "READY"


class TritonUnreachableError(Exception):
    """Triton or one of its models does not answer; the message is for the operator."""


async def discover(address: str, model: str) -> Contract:
    """The contract of ``model`` on the Triton at ``address`` (``host:port``).

    Raises:
        TritonUnreachableError: no answer, or the model is not loaded there.
        discovery.UnknownContractError: its tensors fit no contract.
    """
    (found,) = await discover_all(address, [model])
    if isinstance(found, Exception):
        raise found
    return found


async def discover_all(
    address: str, models: Iterable[str]
) -> list[Contract | TritonUnreachableError | discovery.UnknownContractError]:
    """The contract of each of ``models`` as :func:`discover` finds it, or why there is none; over one connection."""
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        return await asyncio.gather(*(_discover(address, channel, model) for model in models))


async def _discover(
    address: str, channel: grpc.aio.Channel, model: str
) -> Contract | TritonUnreachableError | discovery.UnknownContractError:
    try:
        metadata, config, ready = await asyncio.gather(
            _metadata(channel, model), _config(channel, model), _is_ready(channel, model)
        )
        if not ready:
            return TritonUnreachableError(f"model {model} of Triton at {address} is not ready")
        return discovery.recognise(metadata, config)
    except discovery.UnknownContractError as error:
        return error
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND or error.code() is grpc.StatusCode.INVALID_ARGUMENT:
            return TritonUnreachableError(f"Triton at {address} does not serve model {model}")
        return TritonUnreachableError(f"Triton at {address} does not answer ({error.code().name})")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of Triton's repository.

    ``trouble`` is its state, and why it is in that, where it is not loaded; else empty. ``parameters`` are those of its
    configuration, where it is loaded.
    """

    name: str
    trouble: str
    parameters: Mapping[str, str]


async def list_models(address: str) -> list[ListedModel]:
    """All models in the repository of the Triton at ``address`` (``host:port``), by name.

    Raises:
        TritonUnreachableError: it does not answer.
    """
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        try:
            index = await _index(channel)
            # A model has an entry for each of its versions; one that is ready is enough.
            by_name = {one.name: one for one in sorted(index, key=lambda one: (one.name, one.state == _READY))}
            return await asyncio.gather(*(_listed(channel, one) for one in by_name.values()))
        except grpc.aio.AioRpcError as error:
            raise TritonUnreachableError(f"Triton at {address} does not answer ({error.code().name})") from error


async def _index(channel: grpc.aio.Channel) -> Sequence[service_pb2.RepositoryIndexResponse.ModelIndex]:
    method = channel.unary_unary(
        SERVICE + "RepositoryIndex",
        request_serializer=service_pb2.RepositoryIndexRequest.SerializeToString,
        response_deserializer=service_pb2.RepositoryIndexResponse.FromString,
    )
    answer: service_pb2.RepositoryIndexResponse = await method(service_pb2.RepositoryIndexRequest(), timeout=_SECONDS)
    return answer.models


async def _listed(channel: grpc.aio.Channel, model: service_pb2.RepositoryIndexResponse.ModelIndex) -> ListedModel:
    if model.state != _READY:
        state = model.state or "not loaded"
        return ListedModel(model.name, f"{state}: {model.reason}" if model.reason else state, {})
    config = await _config(channel, model.name)
    return ListedModel(model.name, "", {name: parameter(config, name) for name in config.parameters})


async def _metadata(channel: grpc.aio.Channel, model: str) -> service_pb2.ModelMetadataResponse:
    method = channel.unary_unary(
        SERVICE + "ModelMetadata",
        request_serializer=service_pb2.ModelMetadataRequest.SerializeToString,
        response_deserializer=service_pb2.ModelMetadataResponse.FromString,
    )
    metadata: service_pb2.ModelMetadataResponse = await method(
        service_pb2.ModelMetadataRequest(name=model), timeout=_SECONDS
    )
    return metadata


async def _config(channel: grpc.aio.Channel, model: str) -> model_config_pb2.ModelConfig:
    method = channel.unary_unary(
        SERVICE + "ModelConfig",
        request_serializer=service_pb2.ModelConfigRequest.SerializeToString,
        response_deserializer=service_pb2.ModelConfigResponse.FromString,
    )
    answer: service_pb2.ModelConfigResponse = await method(service_pb2.ModelConfigRequest(name=model), timeout=_SECONDS)
    return answer.config


async def _is_ready(channel: grpc.aio.Channel, model: str) -> bool:
    method = channel.unary_unary(
        SERVICE + "ModelReady",
        request_serializer=service_pb2.ModelReadyRequest.SerializeToString,
        response_deserializer=service_pb2.ModelReadyResponse.FromString,
    )
    answer: service_pb2.ModelReadyResponse = await method(service_pb2.ModelReadyRequest(name=model), timeout=_SECONDS)
    return answer.ready
