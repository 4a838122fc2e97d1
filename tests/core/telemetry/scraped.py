"""Metrics as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


class Scraped:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        families = text_string_to_metric_families(text)
        self.samples = [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of ``name`` that have ``labels``, among others; 0 without one."""
        return sum(s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items())

    def labels(self, label: str) -> set[str]:
        """All values that ``label`` has anywhere."""
        return {sample.labels[label] for sample in self.samples if label in sample.labels}

    def names(self) -> set[str]:
        """The names of all samples."""
        return {sample.name for sample in self.samples}
