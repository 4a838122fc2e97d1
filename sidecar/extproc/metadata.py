"""What Envoy is told of an exchange that is over: dynamic metadata, which its access log and its rate limits can use.

It goes along with the last message of a stream of messages, so it costs nothing per token. Where the client has left
there is no such message, and Envoy is told nothing.

Source: ``ProcessingResponse.dynamic_metadata`` of Envoy's ext_proc (1.40): a struct for each namespace. Envoy takes the
namespaces that its filter lists in ``metadata_options.receiving_namespaces``.
"""

from __future__ import annotations

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse

from sidecar.exchange.report import Report

NAMESPACE = "responses"


def metadata_of(report: Report, *, answered: bool) -> bytes:
    """What ``report`` tells, to stand behind the last message of its exchange.

    Serialized messages that follow each other are one, which has the members of both.

    What is not known is left out. Of an exchange that was not ``answered`` the tokens are 0: nothing of it was sent.
    """
    caller, usage = report.caller, report.usage
    words = {
        "organization": caller.organization,
        "key": caller.key,
        "user": caller.user,
        "model": report.model,
        "outcome": report.outcome,
    }
    tokens = {
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    message = ProcessingResponse()
    metadata = message.dynamic_metadata.fields[NAMESPACE].struct_value
    metadata.update({name: word for name, word in words.items() if word})
    metadata.update({name: count if answered else 0 for name, count in tokens.items()})
    return bytes(message.SerializeToString())
