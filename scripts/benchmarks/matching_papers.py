"""The papers' matching engines with the papers' parameters: matching trees, category matching, Rt-Cluster.

Rates are events in a second of processor time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from benchmarks.frame import Check, Options, Row, Table, figure
from benchmarks.report import as_tables
from benchmarks.tools.category_figures import category_figures
from benchmarks.tools.cluster_figures import cluster_figures
from benchmarks.tools.paper_curves import pictures_of
from benchmarks.tools.stream_figures import stream_figures

NOTES = (
    "HPwsn is the default engine; it is not in the papers",
    "in brackets: predicate evaluations per event, as the engine's paper counts them",
    "Counting is predicate counting alone; PreIndex also knows duplicate and covering predicates",
    "9c: the slowest or busiest block, as if each block had its own core; `by visits` was trained with other"
    " events",
    "categories: evaluations of all of 1,000 events, or of 5,000 where that is said; rates of 20 of them",
)


def run(options: Options) -> Table:
    """All figures of the three papers."""
    groups = [*stream_figures(options), *category_figures(options), *cluster_figures(options)]
    rows = [row for group in groups for row in group]
    return Table(
        "matching-papers",
        "value",
        tuple(groups),
        _checks(groups),
        NOTES,
        body=body_of(rows),
        pictures=pictures_of([asdict(row) for row in rows]),
    )


def body_of(rows: Iterable[Row]) -> str:
    """The last point of each figure: rates by paper, then the figures that HPwsn is not in."""
    figures: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        title, x, _ = row.name.split(" · ")
        figures.setdefault(title, {}).setdefault(x, []).append(row)
    shown = [(title, *list(points.items())[-1]) for title, points in figures.items()]
    return as_tables(cell for point in shown for cell in _cells(*point))


def _cells(title: str, x: str, rows: Sequence[Row]) -> Iterator[tuple[str, str, str, str]]:
    series = {row.name.split(" · ")[2]: row for row in rows}
    if "HPwsn" not in series:
        texts = (f"{name} {figure(row.value)}" for name, row in series.items())
        yield "other figures", f"{title}, {x}", "", ", ".join(texts)
        return
    of, _, unit = title.partition(", ")
    paper, _, name = of.partition(" ")
    for column, row in series.items():
        evaluations = row.note.partition(" ")[0]
        yield f"{paper}, {unit}", f"{name}, {x}", column, f"{figure(row.value)} ({evaluations})"


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
        ("streams 9c, visits of the busiest block", "by predicates", "by visits"),
        ("streams bound, nodes", "bound", "reached"),
        *(
            (figure, "CMA", rival)
            for figure in last
            if figure.endswith("events/s") and (figure, last[figure], "CMA") in rows
            for rival in ("naive", "sequential", "sub-order")
        ),
        ("clusters 6, events/s", "Rt-Cluster", "kd-tree"),
        ("clusters 4, visited", "Sim-NonFre", "Sim-Fre"),
        ("clusters 4, visited", "Sim-Fre", "Sim-Fre-Co"),
    ]
    return tuple(
        Check.ratio(
            f"{figure}, {last[figure]}: {one} vs {other}",
            rows[figure, last[figure], one],
            rows[figure, last[figure], other],
            1.0,
        )
        for figure, one, other in claims
    )
