"""The text of a proposed configuration: YAML in which comments say what each line is for and what may be added."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sidecar.cli.proposal.models import UNKNOWN_CALLS, Proposal

_HEAD = """\
# The configuration of responses-sidecar, proposed by `responses-sidecar init`. Paths are relative to this file.
# `responses-sidecar config schema` has every key; `responses-sidecar check --config FILE` tries all that is here.

# This node's name, which answers tell.
node: {node}
# The directory of the workers' Unix sockets, which Envoy calls.
sockets: sockets

triton:
  # Its gRPC service: only what its models are is asked there, requests go through Envoy.
  address: {address}

models:
"""

_TAIL = """
# Who a request is from is known by keys, which `responses-sidecar keys` makes, and what is used is counted in a ledger.
# With `accounts: false` neither is there, and whoever reaches Envoy is served: for an ingress that does all that.
accounts: true
store:
  # What this node keeps: a SQLite file, unless `url` or `url_file` names a PostgreSQL that nodes share.
  state: state

# Limits of every organization, for each model; `responses-sidecar orgs set-limits` sets those of one.
# admission:
#   defaults:
#     requests_per_minute: 600
#     tokens_per_minute: 200000

# The second surface, /v1/responses, which needs a `catalog` entry of each model that it is to have.
# surfaces:
#   bureau: {store: false, encrypted_reasoning: "off"}

# Metrics for Prometheus, a status page, and the interface for an operator's programs. `playground` is Envoy's listener.
# admin:
#   address: 127.0.0.1:9101
#   playground: http://127.0.0.1:8080
"""


def configuration_text(address: str, node: str, proposals: Sequence[Proposal]) -> str:
    """The whole file; models that cannot or better not be served stand in it as comments."""
    head = _HEAD.format(node=_scalar(node), address=_scalar(address))
    return head + "\n".join(line for proposal in proposals for line in _model(proposal)) + "\n" + _TAIL


def _model(proposal: Proposal) -> Iterator[str]:
    yield f"  # Contract {proposal.contract.name}."
    for words in proposal.notes:
        yield f"  # Note: {words}."
    if proposal.missing:
        yield f"  # Missing: {proposal.missing}."
    if proposal.left_out:
        yield f"  # Left out: {proposal.left_out}."
    mark = "  " if proposal.served else "  # "
    yield from (f"{mark}{line}" for line in _section(proposal))


def _section(proposal: Proposal) -> Iterator[str]:
    yield f"- name: {_scalar(proposal.name)}"
    yield f"  triton_model: {_scalar(proposal.triton_model)}"
    yield f"  tokenizer: {_scalar(str(proposal.tokenizer or '/the/directory/of/its/tokenizer'))}"
    yield f"  context_length: {proposal.context_length}  # tokens; no more than what the engine was built for"
    if proposal.tokenizer is not None:
        yield f"  tool_format: auto  # by its chat template: {proposal.calls or UNKNOWN_CALLS}"
        yield f"  reasoning_format: auto  # by its chat template: {proposal.reasoning or 'none'}"


def _scalar(text: str) -> str:
    """``text`` in quotes: JSON's are YAML's too, and no text can then be taken for something else."""
    return json.dumps(text, ensure_ascii=False)
