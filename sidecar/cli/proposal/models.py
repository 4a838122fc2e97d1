"""What is proposed for each model of a Triton: how it would be served, what that cannot do, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sidecar.backends.triton.client import ListedModel
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.backends.triton.contracts.vllm import Vllm
from sidecar.cli.proposal.tokenizers import choose_tokenizer, context_length, model_name, told_directories
from sidecar.config.load import ConfigError
from sidecar.config.models import ModelConfig
from sidecar.generation.formats import detect_format
from sidecar.generation.reasoning import detect_reasoning
from sidecar.prompts.tokenizer import read_template
from sidecar.server.models import load_model

# Names in TensorRT-LLM's and vLLM's examples, which say nothing of the model.
_NOBODYS = frozenset({"tensorrt_llm", "tensorrt_llm_bls", "ensemble", "vllm_model"})
UNKNOWN_CONTEXT = 4096
"""What is proposed where nothing tells a context length, in tokens: nearly all models have as many."""

UNKNOWN_CALLS = "none that is known, so tools are described as for hermes"
"""What the format of calls is where a chat template shows none."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A model of Triton's that speaks a contract.

    It can be served where ``missing`` is empty. ``left_out`` says why it better is not, where that is so.
    ``calls`` and ``reasoning`` are the formats that its chat template shows, ``notes`` sentences on what to know.
    """

    name: str
    triton_model: str
    contract: Contract
    tokenizer: Path | None = None
    context_length: int = UNKNOWN_CONTEXT
    calls: str | None = None
    reasoning: str | None = None
    notes: tuple[str, ...] = ()
    missing: str = ""
    left_out: str = ""

    @property
    def served(self) -> bool:
        """Whether the configuration has it."""
        return not (self.missing or self.left_out)


def propose(models: Sequence[ListedModel], contracts: Mapping[str, Contract], found: Sequence[Path]) -> list[Proposal]:
    """A proposal for each of ``models`` that has one of ``contracts``, those that answer with ids first.

    ``found`` are the tokenizer directories to choose from.
    """
    told = told_directories(models)
    everywhere = sorted({*found, *told})
    proposals: list[Proposal] = []
    of_contract = [model for model in models if model.name in contracts]
    for model in sorted(of_contract, key=lambda one: contracts[one.name].speaks_text):
        proposals.append(_propose(model, contracts[model.name], choose_tokenizer(model, everywhere, told), proposals))
    return proposals


def _propose(
    model: ListedModel, contract: Contract, candidates: Sequence[Path], others: Sequence[Proposal]
) -> Proposal:
    if len(candidates) != 1:
        several = f"one of {', '.join(map(str, candidates))}" if candidates else "none was found"
        return Proposal(model.name, model.name, contract, missing=f"its tokenizer directory: {several}")
    (tokenizer,) = candidates
    try:
        length = context_length(tokenizer)
        name = _free_name(model_name(tokenizer) if model.name in _NOBODYS else model.name, model.name, others)
        settings = ModelConfig(
            name=name, triton_model=model.name, tokenizer=tokenizer, context_length=length or UNKNOWN_CONTEXT
        )
        served = load_model(settings)
        template = read_template(tokenizer) or ""
    except (ConfigError, ValueError) as error:
        return Proposal(model.name, model.name, contract, tokenizer, missing=f"a tokenizer that can be used: {error}")
    notes = (*served.notes, *_notes_on(contract, length))
    return Proposal(
        name=name,
        triton_model=model.name,
        contract=contract,
        tokenizer=tokenizer,
        context_length=settings.context_length,
        calls=detect_format(template),
        reasoning=detect_reasoning(template),
        notes=notes,
        left_out=_left_out(contract, tokenizer, others),
    )


def _free_name(wanted: str, otherwise: str, others: Sequence[Proposal]) -> str:
    return otherwise if any(other.name == wanted for other in others) else wanted


def _left_out(contract: Contract, tokenizer: Path, others: Sequence[Proposal]) -> str:
    """Why a model is better not served: TensorRT-LLM's ensemble puts text around a model that can be called itself."""
    if contract.name != "ensemble":
        return ""
    engines = (other for other in others if other.contract.name == "token_level" and other.tokenizer == tokenizer)
    engine = next(engines, None)
    return "" if engine is None else f"it seems to be {engine.triton_model} with text around it, which tells less"


def _notes_on(contract: Contract, length: int | None) -> list[str]:
    notes = []
    if length is None:
        notes.append(f"its files do not tell its context length: {UNKNOWN_CONTEXT} is a guess")
    if not contract.guides:
        notes.append(
            "it has no guided decoding: demanded calls and JSON formats are refused, unless `unguided: prompt`"
        )
    if contract.remedy:
        notes.append(f"characters that span tokens are broken: {contract.remedy}")
    if isinstance(contract, Vllm):
        notes.append("before Triton 25.11 its configuration needs the parameter guide_parameter: guided_decoding")
    return notes
