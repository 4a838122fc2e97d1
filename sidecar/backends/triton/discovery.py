"""Which contract a model speaks: told by its tensors, never by its name."""

from __future__ import annotations

from sidecar.backends.triton.contracts import ensemble, llm_api, token_level, vllm
from sidecar.backends.triton.contracts.contract import Contract, Recogniser
from sidecar.backends.triton.protocol import model_config_pb2, service_pb2

# Most particular first: a model is given the first contract that fits.
_RECOGNISERS: tuple[Recogniser, ...] = (
    token_level.recognise,
    llm_api.recognise,
    vllm.recognise,
    ensemble.recognise,
)


class UnknownContractError(Exception):
    """A model whose tensors fit no contract; the message is for the operator."""


def recognise(metadata: service_pb2.ModelMetadataResponse, config: model_config_pb2.ModelConfig) -> Contract:
    """The contract of a model.

    Raises:
        UnknownContractError: no contract fits, or the model cannot stream (is not decoupled).
    """
    if not config.model_transaction_policy.decoupled:
        raise UnknownContractError(f"model {metadata.name} is not decoupled, so it cannot stream")
    for recogniser in _RECOGNISERS:
        contract = recogniser(metadata, config)
        if contract is not None:
            return contract
    inputs = ", ".join(sorted(tensor.name for tensor in metadata.inputs))
    raise UnknownContractError(f"model {metadata.name} speaks no known contract (inputs: {inputs})")
