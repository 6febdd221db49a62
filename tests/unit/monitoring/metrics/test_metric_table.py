"""The table of metrics: from figures to families, and how a scrape is answered."""

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from hpwsn.histogram import Histogram
from hpwsn.monitoring.metrics.exposition import Exposition
from hpwsn.monitoring.metrics.metric_table import Row, counter, families, gauge, histogram, info, states
from hpwsn.monitoring.metrics.service_metrics import service_families
from tests.scraped import parsed

FIGURES = {"a": {"b": 3}, "failures": {"x": 1, "y": 2}, "doors": {"soap": {"in": 5}, "json": {"in": 7}}}


def shown(*rows: Row) -> str:
    return Exposition(lambda: families(rows, FIGURES)).scrape().body.decode()


def test_a_path_leads_to_a_figure() -> None:
    found = parsed(shown(gauge("hpwsn_b", "Text.", "a.b")))
    assert found.value("hpwsn_b") == 3
    assert (found.families["hpwsn_b"].type, found.families["hpwsn_b"].documentation) == ("gauge", "Text.")


def test_a_label_has_a_path_for_each_value() -> None:
    found = parsed(shown(counter("hpwsn_c_total", "Text.", {"one": "a.b", "absent": "a.z"}, "which")))
    assert found.values("hpwsn_c_total") == [3]
    assert found.value("hpwsn_c_total", which="one") == 3


def test_a_star_stands_for_every_key() -> None:
    found = parsed(shown(counter("hpwsn_f_total", "Text.", "failures.*", "reason")))
    assert {r: found.value("hpwsn_f_total", reason=r) for r in "xy"} == {"x": 1, "y": 2}
    two = parsed(shown(Row("counter", "hpwsn_d_total", "Text.", ("door", "way"), (((), "doors.*.*"),))))
    assert two.value("hpwsn_d_total", door="json", way="in") == 7


@pytest.mark.parametrize("path", ["z", "a.z", "a.b.c", "z.*"])
def test_a_family_without_figures_is_left_out(path: str) -> None:
    assert "hpwsn_z" not in shown(gauge("hpwsn_z", "Text.", path))


def test_a_histogram_has_cumulative_buckets_a_sum_and_a_count() -> None:
    measured = Histogram((0.1, 1.0))
    measured.observe(0.05, 2)
    measured.observe(0.5)
    measured.observe(5.0)
    made = [histogram("hpwsn_h_seconds", "Text.", measured)]
    found = parsed(Exposition(lambda: made).scrape().body.decode())
    buckets = {le: found.value("hpwsn_h_seconds_bucket", le=le) for le in ("0.1", "1.0", "+Inf")}
    assert buckets == {"0.1": 2, "1.0": 3, "+Inf": 4}
    assert (found.value("hpwsn_h_seconds_count"), found.value("hpwsn_h_seconds_sum")) == (4, 5.6)


def test_infos_and_states_are_ones() -> None:
    made = [
        info("hpwsn_i", "Text.", {"kind": 'a"b\n'}),
        states("hpwsn_s", "Text.", "state", ("up", "down"), "up"),
    ]
    found = parsed(Exposition(lambda: made).scrape().body.decode())
    assert found.value("hpwsn_i_info", kind='a"b\n') == 1
    assert {s: found.value("hpwsn_s", state=s) for s in ("up", "down")} == {"up": 1, "down": 0}


def test_a_scrape_has_the_version_and_the_process() -> None:
    found = parsed(Exposition().scrape().body.decode())
    assert found.value("hpwsn_build_info") == 1
    names = ("cpu_seconds_total", "resident_memory_bytes", "threads", "open_fds", "start_time_seconds")
    assert all(found.value(f"process_{name}") > 0 for name in names)


def test_openmetrics_is_answered_to_who_asks_for_it() -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    body, content_type = Exposition().scrape(accept)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert "process_cpu_seconds" in {family.name for family in parse_openmetrics(body.decode())}


@pytest.mark.parametrize(
    "accept",
    ["", "text/html", "text/plain;version=abc", "application/openmetrics-text;version=x", ";;,,;" * 1000],
)
def test_any_other_accept_header_gets_a_format_that_can_be_read(accept: str) -> None:
    body, content_type = Exposition().scrape(accept)
    assert content_type.split(";")[0] in ("text/plain", "application/openmetrics-text")
    assert b"process_cpu_seconds_total" in body


def test_figures_of_a_service_beyond_a_float_break_no_scrape() -> None:
    figures = {"lag": 10**400, "batch": -(10**400), "mine": 1}
    service = {"uri": "urn:a", "state": "stopped", "figures": figures}
    found = parsed(Exposition(lambda: service_families([service])).scrape().body.decode())
    assert found.value("hpwsn_stream_lag", service="urn:a") == math.inf
    assert found.value("hpwsn_stream_batch", service="urn:a") == -math.inf
    assert found.value("hpwsn_stream_running", service="urn:a") == 0
    assert "mine" not in found.text
