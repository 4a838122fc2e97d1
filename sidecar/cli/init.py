"""``responses-sidecar init``: writes a configuration for a Triton that runs, and says what it lacks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sidecar.backends.triton.client import ListedModel, TritonUnreachableError, discover_all, list_models
from sidecar.backends.triton.contracts.contract import Contract
from sidecar.cli.proposal.models import UNKNOWN_CALLS, Proposal, propose
from sidecar.cli.proposal.text import configuration_text
from sidecar.cli.proposal.tokenizers import find_tokenizers

WRITTEN, LACKING, REFUSED = range(3)
"""The command's exit statuses."""

Say = Callable[[str], None]
_Found = Contract | Exception


def run_init(address: str, directories: Sequence[Path], path: Path, say: Say) -> int:
    """Ask the Triton at ``address``, write ``path`` and say what is in it and what is missing; the exit status.

    ``directories`` are searched for tokenizers. A file that is there already is left as it is.
    """
    if path.exists():
        say(f"{path} is there already: it is left as it is. --config names another file.")
        return REFUSED
    try:
        models, contracts = asyncio.run(_ask(address))
    except TritonUnreachableError as error:
        say(f"{error}. Is it the port of its gRPC service, 8001 by default?")
        return LACKING
    recognised = {name: found for name, found in contracts.items() if not isinstance(found, Exception)}
    proposals = propose(models, recognised, find_tokenizers(directories))
    try:
        path.write_text(configuration_text(address, socket.gethostname(), proposals), encoding="utf-8")
    except OSError as error:
        say(f"{path} cannot be written ({error.strerror})")
        return REFUSED
    for line in _report(models, contracts, proposals):
        say(line)
    served = sum(proposal.served for proposal in proposals)
    for line in _ending(path, served):
        say(line)
    return WRITTEN if served else LACKING


async def _ask(address: str) -> tuple[list[ListedModel], dict[str, _Found]]:
    """Triton's models, and of those that are loaded the contract, or why there is none."""
    models = await list_models(address)
    loaded = [model.name for model in models if not model.trouble]
    return models, dict(zip(loaded, await discover_all(address, loaded), strict=True))


def _report(
    models: Sequence[ListedModel], contracts: dict[str, _Found], proposals: Sequence[Proposal]
) -> Iterator[str]:
    """A line or more for each model of Triton's."""
    by_model = {proposal.triton_model: proposal for proposal in proposals}
    for model in models:
        proposal = by_model.get(model.name)
        if proposal is not None:
            yield from _on(proposal)
        elif model.trouble:
            yield f"note  {model.name} is {model.trouble}"
        else:
            yield f"note  {contracts[model.name]}"


def _on(proposal: Proposal) -> Iterator[str]:
    what = f"{proposal.triton_model}: contract {proposal.contract.name}"
    if proposal.missing:
        yield f"miss  {what}; missing is {proposal.missing}"
    elif proposal.left_out:
        yield f"note  {what}, left out: {proposal.left_out}"
    else:
        yield f"ok    {what}, served as {proposal.name}, {proposal.context_length} tokens"
        yield f"      tokenizer: {proposal.tokenizer}"
        yield f"      calls: {proposal.calls or UNKNOWN_CALLS}; reasoning: {proposal.reasoning or 'none'}"
        yield from (f"note  {proposal.name}: {words}" for words in proposal.notes)


def _ending(path: Path, served: int) -> Iterator[str]:
    if not served:
        yield f"\n{path} is written, but none of its models can be served yet: it has as comments what is missing."
        return
    yield f"\n{path} is written, with {served} model(s). Read it, then:"
    yield f"  responses-sidecar store migrate --config {path}"
    yield f"  responses-sidecar orgs create acme --config {path}"
    yield f"  responses-sidecar keys create acme --name first --config {path}"
    yield f"  responses-sidecar envoy render --config {path} --form local > envoy.yaml"
    yield f"  responses-sidecar check --config {path} --envoy-config envoy.yaml"
    yield f"  responses-sidecar serve --config {path}"
