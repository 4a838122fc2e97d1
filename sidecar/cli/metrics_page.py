"""``docs/metrics.md``, from the table of metrics."""

from __future__ import annotations

from sidecar.telemetry.metrics.table import METRICS, OF_THE_SUPERVISOR, Metric

_HEAD = """\
# Metrics

<!-- Made from sidecar/telemetry/metrics/table.py by `responses-sidecar docs`. -->

With [`admin.address`](configuration.md) set, `GET /metrics` there tells Prometheus the metrics of the whole node: any
worker answers, for all of them. It needs no key, with accounts and without, and tells nothing of organizations, keys,
users or single requests. The same interface has a [status page](status.md) for people; [the rest of it](admin.md)
needs keys.

```yaml
scrape_configs:
  - job_name: responses-sidecar
    static_configs:
      - targets: ["127.0.0.1:9101"]
```

Alerts on them are in `deploy/prometheus/alerts.yml`, with [what to do about each](runbook.md); a Grafana dashboard is
`deploy/grafana/responses-sidecar.json`.

Names that begin with `gen_ai_` follow [OpenTelemetry's conventions](https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/)
for generative AI, with their advised buckets and more where models are faster or answers longer. `gen_ai_provider_name`
is `triton`, or the name of the upstream. `model` is a model's name in the configuration; it is empty where no model was
called, also where a request named one that is not there.

Nothing is done for a token: an exchange is counted when it is over, from its own report, which takes some 50 µs. So
the time per output token is each answer's mean, and a pause in the midst of an answer shows only as far as it makes the
mean longer. What goes on is told by the gauges, which are set every half a second.

The workers keep their metrics in files in `metrics/` below `sockets`, which are mapped into memory. What a worker has
counted stays when it dies, and its successor goes on from there; its gauges end with it. With the supervisor all begin
anew. A gauge is the sum of the workers' values, but where it says otherwise.

"""

_KINDS = {"sum": "", "min": ", the least of the workers'"}


def metrics_page() -> str:
    """The whole page."""
    rows = "".join(map(_row, (*METRICS, *OF_THE_SUPERVISOR)))
    return f"{_HEAD}| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n{rows}"


def _row(metric: Metric) -> str:
    kind = metric.kind + _KINDS[metric.across]
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {kind} | {labels} | {metric.help} |\n"
