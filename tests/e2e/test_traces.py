"""One trace from the client through Envoy and the sidecar to Triton, as a collector sees it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from stack.local import SCRIPTED, LocalStack
from tests.e2e.client import Client, eventually, script
from tests.e2e.collector import Collector

PARTS = {"envoy", "responses-sidecar"}
WAY = [
    "triton: compute",
    "triton: scripted",
    "triton: InferRequest",
    "envoy: egress triton",
    "responses-sidecar: chat scripted",
    "responses-sidecar: POST /v1/infer/responses",
    "envoy: async envoy.service.ext_proc.v3.ExternalProcessor.Process egress",
    "envoy: ingress",
]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack all of whose parts send their spans to ``collector``."""
    with LocalStack(
        tmp_path_factory.mktemp("traced"),
        models=[SCRIPTED],
        workers=1,
        sidecar_settings={"telemetry": {"otlp": {"endpoint": collector.url, "envoy": True}}},
        triton_traces=collector.url,
    ) as stack:
        yield stack


def parent(flag: str = "01") -> tuple[str, dict[str, str]]:
    """A client's own span: the id of its trace, and the header."""
    trace = secrets.token_hex(16)
    return trace, {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-{flag}"}


async def test_one_trace_shows_the_way_of_a_request(traced: LocalStack, collector: Collector) -> None:
    trace, headers = parent()
    async with Client(traced) as client:
        answer = await client.ask(script("some", " words", stream=True), **headers)
        assert answer.status_code == 200
    # Each part sends its spans when it likes.
    await eventually(lambda: any(len(chain) == len(WAY) for chain in collector.chains(trace)), 30)
    assert max(collector.chains(trace), key=len) == WAY
    spans = collector.of(trace)
    first = next(span for span in spans.values() if span.parent not in spans)
    assert first.parent == headers["traceparent"].split("-")[2]
    request = next(span for span in spans.values() if span.attributes.get("responses.request_id"))
    assert request.attributes["responses.request_id"] == answer.headers["x-request-id"]
    assert request.attributes["responses.organization"].startswith("org_")
    call = next(span for span in spans.values() if "gen_ai.usage.output_tokens" in span.attributes)
    assert call.attributes["gen_ai.provider.name"] == "triton"
    assert not any(word in str(spans) for word in ("script:", "some", " words"))


async def test_what_its_client_does_not_sample_is_not_traced(traced: LocalStack, collector: Collector) -> None:
    unsampled, headers = parent("00")
    sampled, later = parent()
    async with Client(traced) as client:
        assert (await client.ask(script("some"), **headers)).status_code == 200
        assert (await client.ask(script("some"), **later)).status_code == 200
    await eventually(lambda: {span.service for span in collector.of(sampled).values()} == {*PARTS, "triton"}, 30)
    # Triton has a rate of its own, which is all of them here.
    assert not {span.service for span in collector.of(unsampled).values()} & PARTS
