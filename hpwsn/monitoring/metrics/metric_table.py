"""Metrics as a table: each row says where a figure is in the document of /status and how /metrics shows it.

A row is a family of Prometheus: a name in base units, a type, a help text and samples. A sample has label
values and the path of its figure, such as `journal.commits`. A `*` in a path stands for each
entry of that object, with the key as label value; only objects with a bounded number of keys are shown so.
A figure that is absent gives no sample, and a family without samples is left out: a node without a cluster
has no metrics of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from hpwsn.histogram import Histogram

Kind = Literal["counter", "gauge"]
Figures = Mapping[str, Any]
_FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


@dataclass(frozen=True, slots=True)
class Row:
    """One family; `samples` are the label values and the path of each figure."""

    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...]
    samples: tuple[tuple[tuple[str, ...], str], ...]

    def family(self, figures: Figures) -> Metric | None:
        """The family with the present figures; None if it has none."""
        family = _FAMILIES[self.kind](self.name, self.help, labels=self.labels)
        for values, path in self.samples:
            for found, number in _find(figures, path, values):
                family.add_metric(found, number)
        return family if family.samples else None


def counter(name: str, help_: str, figure: str | Mapping[str, str], label: str = "") -> Row:
    """A row for a count since the start; `name` ends in `_total`.

    `figure` is a path, or with a label the path for each of its values.
    """
    return _row("counter", name, help_, figure, label)


def gauge(name: str, help_: str, figure: str | Mapping[str, str], label: str = "") -> Row:
    """A row for a figure of now; `figure` and `label` as in `counter`."""
    return _row("gauge", name, help_, figure, label)


def _row(kind: Kind, name: str, help_: str, figure: str | Mapping[str, str], label: str) -> Row:
    if isinstance(figure, str):
        return Row(kind, name, help_, (label,) if label else (), (((), figure),))
    samples = tuple(((value,), path) for value, path in figure.items())
    return Row(kind, name, help_, (label,), samples)


def _find(figures: Any, path: str, values: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    name, _, rest = path.partition(".")
    if not name:
        yield values, float(figures)
    elif not isinstance(figures, Mapping):
        return
    elif name == "*":
        for key, found in figures.items():
            yield from _find(found, rest, (*values, str(key)))
    elif figures.get(name) is not None:
        yield from _find(figures[name], rest, values)


def families(rows: Iterable[Row], figures: Figures) -> Iterator[Metric]:
    """The families of a table that have samples."""
    for row in rows:
        family = row.family(figures)
        if family is not None:
            yield family


def histogram(name: str, help_: str, measured: Histogram) -> Metric:
    """The family of a histogram; `name` ends in its unit."""
    family = HistogramMetricFamily(name, help_)
    buckets = measured.cumulative()
    shown = [("+Inf" if bound == float("inf") else repr(bound), count) for bound, count in buckets]
    family.add_metric((), shown, measured.total)
    return family


def info(name: str, help_: str, values: Mapping[str, str]) -> Metric:
    """The family NAME_info: always 1, with what is known as labels."""
    return InfoMetricFamily(name, help_, dict(values))


def states(name: str, help_: str, label: str, known: Iterable[str], present: str) -> Metric:
    """The family of a state: 1 for the present one and 0 for all others."""
    family = GaugeMetricFamily(name, help_, labels=(label,))
    for state in known:
        family.add_metric((state,), float(state == present))
    return family
