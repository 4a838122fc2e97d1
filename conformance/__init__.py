r"""Checks whether a Responses endpoint keeps to the protocol: a package of its own, usable without the sidecar.

A stream or a response that is already at hand is checked without I/O; a fault names its rule and where it is:

>>> from conformance import check_response, check_stream
>>> events, violations = check_stream(b'event: response.created\ndata: {"type": "ping", "sequence_number": 0}\n\n')
>>> for violation in violations:
...     print(f"{violation.rule}: {violation.message}")
sse-event-name: the event is named 'response.created', its data 'ping'
known-event: the type 'ping' is not one of OpenAI's
one-terminal: the stream has no end event
>>> check_response({"object": "response", "status": "completed", "output": []})[0].message
"response: 'id' is missing"

:class:`StreamChecker` takes a stream in any split. :class:`Endpoint` sends the requests of :data:`PROBES` and checks
what comes back, one :class:`Result` after another; :class:`Verification` gathers them as text and as JSON::

    endpoint = Endpoint("http://127.0.0.1:8080/v1", key=None)
    verification = Verification(endpoint.url, endpoint.first_model())
    verification.results.extend(endpoint.results(verification.model))
    print(verification.summary())

:data:`RULES` holds every rule with one sentence. Names of rules are stable. Besides the standard library only
``jsonschema`` is needed.
"""

from conformance.answers import Verdict, check_answer
from conformance.client import Answer, NoAnswerError, Piece
from conformance.documents import check_error_body, check_response
from conformance.endpoint import Endpoint, EndpointError
from conformance.markers import check_markers
from conformance.probe import Probe
from conformance.probes import PROBES, probes_for
from conformance.rules import RULES, Rule, Violation
from conformance.sse import ReceivedEvent, SseReader
from conformance.stream import StreamChecker, check_stream
from conformance.verification import Result, Verification

__all__ = [
    "PROBES",
    "RULES",
    "Answer",
    "Endpoint",
    "EndpointError",
    "NoAnswerError",
    "Piece",
    "Probe",
    "ReceivedEvent",
    "Result",
    "Rule",
    "SseReader",
    "StreamChecker",
    "Verdict",
    "Verification",
    "Violation",
    "check_answer",
    "check_error_body",
    "check_markers",
    "check_response",
    "check_stream",
    "probes_for",
]
