"""What /metrics of a node or admin node answers, read with the parser of prometheus_client."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Scraped:
    """The families of one answer by name, and the text itself."""

    text: str
    families: Mapping[str, Metric]

    def value(self, name: str, **labels: str) -> float:
        """The value of the one sample with this name and these labels, and perhaps others."""
        (found,) = self.values(name, **labels)
        return found

    def values(self, name: str, **labels: str) -> list[float]:
        """The values of all samples with this name and these labels."""
        return [
            sample.value
            for family in self.families.values()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def total(self, name: str, **labels: str) -> float:
        """Their sum."""
        return sum(self.values(name, **labels))


def parsed(text: str) -> Scraped:
    """Parse the text format."""
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(set(names)) == len(names), f"families that come twice: {sorted(names)}"
    return Scraped(text, dict(zip(names, families, strict=True)))


def scrape(base: str) -> Scraped:
    """Ask for /metrics as Prometheus does, in the text format."""
    with urllib.request.urlopen(f"{base}/metrics", timeout=PATIENCE) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parsed(answer.read().decode())
