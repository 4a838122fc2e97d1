"""A worker's metrics, and those of all workers together.

They are kept by ``prometheus_client`` in its multiprocess mode: each worker writes to files that are mapped into its
memory, and any of them can read the files of all. https://prometheus.github.io/client_python/multiprocess/
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from sidecar.telemetry.metrics import files
from sidecar.telemetry.metrics.table import METRICS, OF_THE_SUPERVISOR, Metric

Gauges = Mapping[str, Mapping[tuple[str, ...], float]]
"""Gauges by name, and by the values of their labels in the order of the table."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of what :func:`scrape` returns."""


class Metrics:
    """Counts for one worker, from any of its threads."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._families = {metric: _family(metric, registry) for metric in METRICS}
        # A label's value is looked up by the library with a lock and several calls.
        self._known: dict[tuple[Metric, tuple[str, ...]], Counter | Gauge | Histogram] = {}

    def count(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        one = self._one(metric, labels)
        assert isinstance(one, Counter)
        one.inc(by)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""
        one = self._one(metric, labels)
        assert isinstance(one, Gauge)
        one.set(value)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Note a value in a histogram."""
        one = self._one(metric, labels)
        assert isinstance(one, Histogram)
        one.observe(value)

    def _one(self, metric: Metric, labels: tuple[str, ...]) -> Counter | Gauge | Histogram:
        one = self._known.get((metric, labels))
        if one is None:
            family = self._families[metric]
            one = self._known[metric, labels] = family.labels(*labels) if labels else family
        return one


def open_metrics(directory: Path, place: int) -> Metrics:
    """The metrics of the worker in ``place``, in its files in ``directory``. A process does this once.

    Raises:
        OSError: the files cannot be made.
    """
    files.make(directory, place)
    # The library reads it where it opens a file, and takes this class for all values from now on.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    values.ValueClass = values.MultiProcessValue(lambda: place)  # type: ignore[no-untyped-call]
    return Metrics()


def scrape(directory: Path) -> bytes:
    """The metrics of the node in Prometheus's text format. This reads files: it is not for an event loop."""
    registry = CollectorRegistry()
    registry.register(_OfTheSupervisor(directory))
    multiprocess.MultiProcessCollector(registry, str(directory))  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def read_gauges(directory: Path) -> Gauges:
    """The gauges of all workers, as :func:`scrape` has them. This reads files: it is not for an event loop."""
    paths = [str(path) for path in directory.glob("gauge_*.db")]
    families = multiprocess.MultiProcessCollector.merge(paths, accumulate=True)  # type: ignore[no-untyped-call]
    return {
        metric.name: {
            tuple(sample.labels[label] for label in metric.labels): sample.value
            for family in families
            if family.name == metric.name
            for sample in family.samples
        }
        for metric in METRICS
        if metric.kind == "gauge"
    }


class _OfTheSupervisor(Collector):
    """What the supervisor tells, which keeps no metrics of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Two gauges, once there is something to tell."""
        with suppress(OSError):
            for metric, value in zip(OF_THE_SUPERVISOR, files.read_loaded(self._directory), strict=True):
                yield GaugeMetricFamily(metric.name, metric.help, value)


def _family(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    name, told, labels = metric.name, metric.help, metric.labels
    if metric.kind == "counter":
        return Counter(name, told, labels, registry=registry)
    if metric.kind == "gauge":
        mode: Literal["livesum", "livemin"] = "livesum" if metric.across == "sum" else "livemin"
        return Gauge(name, told, labels, registry=registry, multiprocess_mode=mode)
    return Histogram(name, told, labels, registry=registry, buckets=metric.buckets)
