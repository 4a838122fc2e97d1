"""Asks a running Triton about its models, over gRPC; clients' requests go through Envoy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from sidecar.backends.triton import discovery
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.backends.triton.contracts.tensors import parameter
from sidecar.backends.triton.protocol import SERVICE, model_config_pb2, service_pb2

_SECONDS = 5.0
CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0),)
"""Triton is asked as Envoy asks it: without the proxies that the environment may name."""
# A model is used once it is this.
_READY = "READY"

Answer = TypeVar("Answer", bound=Message)


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
    request = service_pb2.RepositoryIndexRequest()
    return (await _ask(channel, "RepositoryIndex", request, service_pb2.RepositoryIndexResponse)).models


async def _listed(channel: grpc.aio.Channel, model: service_pb2.RepositoryIndexResponse.ModelIndex) -> ListedModel:
    if model.state != _READY:
        state = model.state or "not loaded"
        return ListedModel(model.name, f"{state}: {model.reason}" if model.reason else state, {})
    config = await _config(channel, model.name)
    return ListedModel(model.name, "", {name: parameter(config, name) for name in config.parameters})


async def _metadata(channel: grpc.aio.Channel, model: str) -> service_pb2.ModelMetadataResponse:
    request = service_pb2.ModelMetadataRequest(name=model)
    return await _ask(channel, "ModelMetadata", request, service_pb2.ModelMetadataResponse)


async def _config(channel: grpc.aio.Channel, model: str) -> model_config_pb2.ModelConfig:
    request = service_pb2.ModelConfigRequest(name=model)
    return (await _ask(channel, "ModelConfig", request, service_pb2.ModelConfigResponse)).config


async def _is_ready(channel: grpc.aio.Channel, model: str) -> bool:
    request = service_pb2.ModelReadyRequest(name=model)
    return (await _ask(channel, "ModelReady", request, service_pb2.ModelReadyResponse)).ready


async def _ask(channel: grpc.aio.Channel, method: str, request: Message, answer: type[Answer]) -> Answer:
    """What Triton answers to a call of ``method``.

    Raises:
        grpc.aio.AioRpcError: it does not.
    """
    call = channel.unary_unary(
        SERVICE + method,
        request_serializer=type(request).SerializeToString,
        response_deserializer=answer.FromString,
    )
    answered: Answer = await call(request, timeout=_SECONDS)
    return answered
