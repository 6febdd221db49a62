"""What Spark says of a batch, as the figures that `/streams` lists and the line that a person reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Figures = dict[str, float]


def figures_of(progress: Mapping[str, Any]) -> Figures:
    """Rows a second in and out, rows so far behind, and times, of the last batch."""
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
    rows = progress.get("numInputRows", 0)
    out = max(0, progress.get("sink", {}).get("numOutputRows") or 0)
    return {
        "batch": progress.get("batchId", 0),
        "rows_in": rows,
        "rows_out": out,
        "rows_per_second": round(rows / seconds, 1) if seconds else 0.0,
        "lag": sum(map(_lag, progress.get("sources", ()))),
        "batch_seconds": seconds,
    }


def _lag(source: Mapping[str, Any]) -> int:
    """Events that a topic had and the batch did not read, as its source has counted them."""
    latest = source.get("latestOffset")
    if isinstance(latest, str):
        try:
            latest = json.loads(latest)
        except ValueError:
            return 0
    found = latest.get("waiting") if isinstance(latest, dict) else None
    return found if isinstance(found, int) else 0


def line_of(uri: str, figures: Figures) -> str:
    """One line for a person."""
    return (
        f"{uri}  batch {figures['batch']:.0f}: {figures['rows_in']:,.0f} in, {figures['rows_out']:,.0f} out,"
        f" {figures['rows_per_second']:,.0f} rows/s, lag {figures['lag']:,.0f},"
        f" {figures['batch_seconds']:.2f} s"
    )
