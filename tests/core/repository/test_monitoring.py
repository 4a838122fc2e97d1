"""The dashboard and the alerts ask for metrics, labels and codes that there are, and each alert is in the runbook."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from sidecar.responses.errors import CODES
from sidecar.telemetry.metrics.table import METRICS, OF_THE_SUPERVISOR
from stack.paths import ROOT

ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((ROOT / "deploy/grafana/responses-sidecar.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [(alert["alert"], alert["expr"]) for alert in ALERTS] + [
    (panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]
]
EVERY = (*METRICS, *OF_THE_SUPERVISOR)
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
# What Prometheus itself knows of whom it scrapes.
OF_PROMETHEUS = {"up"}
OF_EVERY_SAMPLE = {"instance", "job", "le"}


def labels_by_sample() -> dict[str, set[str]]:
    """The names that samples have, and the labels that each has."""
    suffixes = {"counter": ("",), "gauge": ("",), "histogram": HISTOGRAM_SUFFIXES}
    return {metric.name + suffix: set(metric.labels) for metric in EVERY for suffix in suffixes[metric.kind]}


def asked_for(expression: str) -> set[str]:
    """The names of the samples in ``expression``."""
    return set(
        re.findall(r"\b(?:(?:responses|gen_ai)_\w+(?=[{\[ )]|$)|up(?={))", re.sub(r"by \([^)]*\)", "", expression))
    )


@pytest.mark.parametrize(("name", "expression"), EXPRESSIONS)
def test_what_is_asked_for_is_there(name: str, expression: str) -> None:
    known, asked = labels_by_sample(), asked_for(expression)
    assert asked
    assert asked <= known.keys() | OF_PROMETHEUS
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    wanted = {label.strip() for group in grouped for label in group.split(",")}
    wanted |= set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression))
    assert wanted <= set().union(*(known.get(sample, set()) for sample in asked)) | OF_EVERY_SAMPLE


def test_an_expression_with_a_metric_that_is_not_there_is_found() -> None:
    assert asked_for('sum by (model) (rate(responses_nothing_total{model="a"}[5m])) > up{job="b"}') == {
        "responses_nothing_total",
        "up",
    }


def test_the_codes_of_alerts_are_those_of_errors() -> None:
    for code in re.findall(r"code=~\"([^\"]*)\"", " ".join(alert["expr"] for alert in ALERTS)):
        assert all(any(re.fullmatch(one, known) for known in CODES) for one in code.split("|"))


def test_each_metric_is_on_the_dashboard() -> None:
    shown = {sample for panel in PANELS for target in panel["targets"] for sample in asked_for(target["expr"])}
    assert {metric.name for metric in EVERY} <= {re.sub("_bucket$", "", sample) for sample in shown}


def test_each_alert_is_in_the_runbook() -> None:
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    assert headings == [alert["alert"] for alert in ALERTS]
    for alert in ALERTS:
        assert alert["annotations"]["runbook_url"] == f"docs/runbook.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in ("warning", "critical")
