"""``responses-sidecar verify``: says of any Responses endpoint whether it keeps to the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable

from conformance import Endpoint, EndpointError, NoAnswerError, Verification
from conformance.words import printable

SOUND, VIOLATED, NOT_TRIED = range(3)
"""The command's exit statuses."""

Say = Callable[[str], None]


def run_verification(url: str, key: str | None, model: str | None, *, as_json: bool, say: Say, warn: Say) -> int:
    """Send all probes and say what they find, as it comes or as one JSON document; the exit status.

    ``url`` is the base URL, ``model`` is by default the endpoint's first one. Why an endpoint could not be tried is
    told to ``warn`` in one sentence.
    """
    verification = Verification(url, model)
    try:
        _verify(verification, Endpoint(url, key), say if not as_json else lambda line: None)
    except (EndpointError, NoAnswerError, ValueError) as error:
        verification.error = str(error)
        warn(f"error: {error}")
    if as_json:
        say(json.dumps(verification.to_json(), ensure_ascii=False, indent=2))
    if verification.error is not None:
        return NOT_TRIED
    return SOUND if verification.sound else VIOLATED


def _verify(verification: Verification, endpoint: Endpoint, say: Say) -> None:
    verification.url = endpoint.url
    verification.model = verification.model or endpoint.first_model()
    said = False
    for result in endpoint.results(verification.model):
        if not said:
            # Where the endpoint cannot be tried, that is all there is to say.
            say(printable(f"POST {endpoint.url}, model {verification.model}") + "\n")
            said = True
        verification.results.append(result)
        say("\n".join(result.lines()))
    say(f"\n{verification.summary()}")
