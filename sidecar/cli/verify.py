"""``responses-sidecar verify``: says of any Responses endpoint whether it keeps to the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable

from conformance.endpoint import Endpoint
from conformance.report import Report


def run_verification(endpoint: Endpoint, model: str | None, *, as_json: bool, say: Callable[[str], None]) -> bool:
    """Send all probes and say what they find, as it comes or as one JSON document; whether the endpoint is sound.

    Raises:
        NoAnswerError: no model was named, and the endpoint could not be reached.
        NoModelError: no model was named, and the endpoint has no list of models.
        ValueError: the endpoint's URL is not an ``http`` or ``https`` URL.
    """
    report = Report(endpoint.url, model or endpoint.first_model())
    if not as_json:
        say(f"POST {report.url}, model {report.model}\n")
    for result in endpoint.results(report.model):
        report.results.append(result)
        if not as_json:
            say("\n".join(result.lines()))
    say(json.dumps(report.to_json(), ensure_ascii=False, indent=2) if as_json else f"\n{report.summary()}")
    return report.sound
