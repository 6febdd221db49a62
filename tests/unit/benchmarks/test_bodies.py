"""Tables for the page that have a column for each case instead of a line."""

from benchmarks import backlog, cluster, durability, fan_out, latency, matching_papers
from benchmarks.frame import Row


def test_fan_out_has_a_column_for_each_number_of_consumers_with_the_cpu_time():
    rows = [Row("HPwsn, durability none, to 1", 900.0, "27.4 µs, 96%/23%")]
    rows.append(Row.of("HPwsn, durability none, to 32", [600, 700, 800], "1,335.6 µs, 99%/16%"))
    assert fan_out.body_of(rows).splitlines() == [
        "| notifications accepted/s | to 1 | to 32 |",
        "|---|---|---|",
        "| HPwsn, durability none | 900, 27.4 µs | 700 (600–800), 1,335.6 µs |",
    ]


def test_latency_has_a_table_for_each_rate_without_the_percentile_that_few_samples_cannot_tell():
    rows = [
        Row(f"{place} at {rate}/s, HPwsn", 1.0)
        for rate in ("500", "4,000")
        for place in ("p50", "p99", "p99.9", "max")
    ]
    first, second = latency.body_of(rows).split("\n\n")
    assert first.splitlines()[0] == "| ms at 500/s | p50 | p99 | max |"
    assert second.splitlines()[2] == "| HPwsn | 1.00 | 1.00 | 1.00 |"


def test_a_cluster_has_rates_by_path_and_ratios_by_loss():
    groups = [
        [Row("one node", 900.0)],
        [Row("one node, MB/s", 106.0)],
        [Row("UDP, 1 % lost, % delivered", 95.6)],
        [Row("reliable, 1 % lost, % delivered", 100.0)],
    ]
    rates, ratios = cluster.body_of(groups).split("\n\n")
    assert rates.endswith("| one node | 900 | 106 |")
    assert ratios.endswith("| 1 % lost | 95.6 | 100 |")


def test_durability_has_a_column_for_each_number_of_publishers():
    body = durability.body_of([Row("none, 1 pub.", 2853.0), Row("none, 8 pub.", 6593.0)])
    assert body.startswith("| notifications/s | publishers: 1 | publishers: 8 |\n")


def test_a_backlog_shows_four_steps():
    rows = [Row(f"{step} queued", 1.0) for step in range(backlog.STEPS + 1)]
    lines = backlog.body_of(rows).splitlines()[2:]
    assert [line.split()[1] for line in lines] == ["0", "1", "5", "10"]


def test_the_papers_figures_show_their_last_points_with_the_evaluations():
    rows = [
        Row(
            f"streams 9a, events/s · predicates {count} · {engine}", 900.0 + count, "37 evaluations per event"
        )
        for count in (2, 12)
        for engine in ("NormalTree", "HPwsn")
    ]
    rows += [Row("clusters 5, merged · all · InNode", 753.0), Row("clusters 5, merged · all · Both", 9.0)]
    rates, others = matching_papers.body_of(rows).split("\n\n")
    assert rates.splitlines() == [
        "| streams, events/s | NormalTree | HPwsn |",
        "|---|---|---|",
        "| 9a, predicates 12 | 912 (37) | 912 (37) |",
    ]
    assert others.endswith("| clusters 5, merged, all | InNode 753, Both 9.00 |")
