"""The papers' matching engines with the papers' parameters: matching trees, category matching, Rt-Cluster.

Rates are events in a second of processor time. `python -m benchmarks.tools.paper_curves` makes the figures of
docs/matching.md from the JSON.
"""

from collections.abc import Sequence

from benchmarks.frame import Check, Options, Row, Table
from benchmarks.tools.category_figures import category_figures
from benchmarks.tools.cluster_figures import cluster_figures
from benchmarks.tools.stream_figures import stream_figures

NOTES = (
    "HPwsn is the default engine; the papers do not know it",
    "9c: the rate of the slowest block, as if each had a core of its own",
    "the checks are the papers' claims: what is not met is explained in docs/matching.md",
)


def run(options: Options) -> Table:
    """All figures of the three papers."""
    groups = [*stream_figures(options), *category_figures(options), *cluster_figures(options)]
    return Table("matching-papers", "value", tuple(groups), _checks(groups), NOTES)


def _checks(groups: Sequence[Sequence[Row]]) -> tuple[Check, ...]:
    rows = {tuple(row.name.split(" · ")): row for group in groups for row in group}
    last = {figure: x for figure, x, _ in rows}
    claims = [
        *(
            ("streams 9a, events/s", "ImprovedTree", rival)
            for rival in ("NormalTree", "PreIndex", "BruteForce")
        ),
        *(
            ("streams 9b, events/s", "ImprovedTree", rival)
            for rival in ("NormalTree", "PreIndex", "BruteForce")
        ),
        ("streams 9c, events/s", "by predicates", "by subtrees"),
        *(
            (figure, "CMA", rival)
            for figure in last
            if (figure, last[figure], "CMA") in rows
            for rival in ("naive", "sequential", "sub-order")
        ),
        ("clusters 6, events/s", "Rt-Cluster", "kd-tree"),
        ("clusters 4, visited", "Sim-NonFre", "Sim-Fre"),
        ("clusters 4, visited", "Sim-Fre", "Sim-Fre-Co"),
    ]
    return tuple(
        Check.ratio(
            f"{figure}, {last[figure]}: {one} for {other}",
            rows[figure, last[figure], one],
            rows[figure, last[figure], other],
            1.0,
        )
        for figure, one, other in claims
    )
