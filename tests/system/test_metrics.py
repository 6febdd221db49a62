"""Metrics of a real node and admin node after work of every kind, as the library and promtool read them."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hpwsn.monitoring.metrics import admin_metrics, broker_metrics, cluster_metrics
from hpwsn_client import Client
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.original_messages import NOTIFICATION
from tests.patience import PATIENCE, eventually
from tests.producer import register
from tests.prometheus import promtool
from tests.raw_soap import call, notify, send, subscribe
from tests.scraped import Scraped, scrape

QUICK = (
    *("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_max=0.02"),
    *("--set", "retry.server_error_attempts=2"),
)
FLOW = {
    "topic": "flow",
    "instance": "1",
    "figures": {"lag": 7, "rows_in": 3, "failures": 2, "rows_per_second": 1.5},
}
HISTOGRAMS = ("accept", "commit", "match", "queue_wait", "delivery")
STANDARD = (
    *("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "threads", "open_fds", "max_fds"),
    "start_time_seconds",
)
OF_ONE_PART = ("hpwsn_outcome_", "hpwsn_agent_", "hpwsn_original_", "hpwsn_backbone_", "hpwsn_directory_")
"""Metrics of parts that these nodes do not have."""


@dataclass(frozen=True)
class Site:
    """An admin node and two nodes of one cluster, after work of every kind."""

    admin: AdminProcess
    node: Member
    other: Member


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("metrics")
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(folder / "admin"))
        node = stack.enter_context(Member(folder / "a", "a", "one", admin.base, *QUICK))
        other = stack.enter_context(Member(folder / "b", "b", "one", admin.base))
        asyncio.run(work(node, other))
        yield Site(admin, node, other)


async def work(node: Member, other: Member) -> None:
    """Publish at every door, deliver and fail, and send to another node."""
    base = node.base
    async with (
        Consumer() as good,
        Consumer(lambda number: 500) as bad,
        Consumer() as far,
        Client(node.url) as client,
    ):
        for consumer, url, topic in ((good, node.url, "A"), (bad, node.url, "B"), (far, other.url, "A")):
            assert (await call(url, subscribe(consumer.url, topic))).status == 200
        assert (await call(node.url, "<w:CreatePullPoint/>")).status == 200
        assert (await call(node.url, register("http://127.0.0.1:1/publisher", "A"))).status == 200
        async with asyncio.timeout(PATIENCE):
            while not far.requests:
                assert (await call(node.url, notify("A", "<n/>"))).status == 202
        for _ in range(2):
            await client.notify("A", "<n>once</n>", message_id="id-1")
        events = f"{base}/topics/A/events"
        assert (await send(events, b'[{"n": 1}, {"n": 2}]', "application/json")).status == 202
        assert (await call(f"{base}/onvif/events", notify("A", "<n/>"))).status == 202
        request = NOTIFICATION.format(topic="A", fragment="0-0-1-0", message="text")
        assert (await send(f"{node.url}/process", request.encode())).status == 202
        assert (await call(node.url, notify("B", "<n/>"))).status == 202
        assert (await call(node.url, notify("A", "<n/>", dialect="urn:unknown"))).status == 500
        assert (await send(events, b"{", "application/json")).status == 400
        flow = f"{base}/streams/urn%3Aflow"
        assert (await send(flow, json.dumps(FLOW).encode(), "application/json", method="PUT")).status == 200

        async def settled() -> bool:
            found = await asyncio.to_thread(scrape, base)
            dead, waiting = found.values("hpwsn_dead_letters"), found.values("hpwsn_notifications_waiting")
            return dead == [1] and waiting == [0]

        await eventually(settled)


@pytest.fixture
def metrics(site: Site) -> Scraped:
    return scrape(site.node.base)


def test_promtool_has_no_complaint_about_a_node(metrics: Scraped) -> None:
    assert promtool("check", "metrics", stdin=metrics.text) == ""


def test_promtool_has_no_complaint_about_an_admin_node(site: Site) -> None:
    assert promtool("check", "metrics", stdin=scrape(site.admin.base).text) == ""


def test_promtool_would_complain() -> None:
    """The check of these tests can fail."""
    with pytest.raises(AssertionError, match="counter metrics should have"):
        promtool("check", "metrics", stdin="# HELP a_b Text.\n# TYPE a_b counter\na_b 1\n")


@pytest.mark.parametrize("which", ["node", "admin"])
def test_every_family_has_a_type_and_a_help_text(site: Site, which: str) -> None:
    found = scrape(getattr(site, which).base)
    for name, family in found.families.items():
        assert family.type in ("counter", "gauge", "histogram"), name
        assert family.documentation, name
        assert name.startswith(("hpwsn_", "process_"))


@pytest.mark.parametrize("which", ["node", "admin"])
def test_the_process_has_the_standard_names(site: Site, which: str) -> None:
    found = scrape(getattr(site, which).base)
    assert all(found.value(f"process_{name}") > 0 for name in STANDARD)
    assert found.value("hpwsn_build_info") == 1


def test_a_node_has_every_metric_of_the_tables_that_concerns_it(metrics: Scraped) -> None:
    rows = (*broker_metrics.ROWS, *cluster_metrics.ROWS)
    expected = {row.name.removesuffix("_total") for row in rows if not row.name.startswith(OF_ONE_PART)}
    assert sorted(expected - set(metrics.families)) == []


def test_an_admin_node_has_every_metric_of_its_table(site: Site) -> None:
    expected = {row.name.removesuffix("_total") for row in admin_metrics.ROWS}
    assert sorted(expected - set(scrape(site.admin.base).families)) == []


def test_notifications_are_counted_by_door_and_outcome(metrics: Scraped) -> None:
    def published(door: str, outcome: str) -> float:
        return metrics.value("hpwsn_notifications_published_total", door=door, outcome=outcome)

    assert (published("json", "accepted"), published("onvif", "accepted")) == (2, 1)
    assert published("original", "accepted") == 1
    assert published("soap", "accepted") >= 3
    assert (published("soap", "repeated"), published("json", "repeated")) == (1, 0)
    assert metrics.value("hpwsn_http_requests_total", door="json", code="4xx") == 1
    assert metrics.value("hpwsn_http_requests_total", door="soap", code="5xx") >= 1


def test_deliveries_and_failures_are_counted(metrics: Scraped) -> None:
    assert metrics.value("hpwsn_notifications_delivered_total") >= 5
    assert metrics.value("hpwsn_send_failures_total", reason="server_error") == 2
    assert metrics.value("hpwsn_send_failures_total", reason="timeout") == 0
    assert metrics.value("hpwsn_notifications_undelivered_total", reason="dead_letter") == 1
    assert metrics.value("hpwsn_dead_letters") == 1
    assert metrics.value("hpwsn_push_outcomes_total", outcome="delivered") >= 3


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_histogram_has_observed_and_its_buckets_add_up(metrics: Scraped, name: str) -> None:
    buckets = metrics.values(f"hpwsn_{name}_seconds_bucket")
    count = metrics.value(f"hpwsn_{name}_seconds_count")
    assert buckets == sorted(buckets)
    assert buckets[-1] == count > 0
    assert metrics.value(f"hpwsn_{name}_seconds_sum") > 0


def test_the_time_to_accept_counts_every_202(metrics: Scraped) -> None:
    published, requests = "hpwsn_notifications_published_total", "hpwsn_http_requests_total"
    # Each request to the SOAP door had one notification; the other doors answered nothing else with 2xx.
    soap = sum(metrics.value(published, door="soap", outcome=each) for each in ("accepted", "repeated"))
    others = sum(metrics.total(requests, door=door, code="2xx") for door in ("json", "onvif", "original"))
    assert metrics.value("hpwsn_accept_seconds_count") == soap + others


async def test_a_consumer_that_hangs_is_failing_also_during_an_attempt(tmp_path: Path) -> None:
    limits = (*QUICK, "--set", "delivery.response_timeout=0.5")
    with NodeProcess(tmp_path / "data", *limits) as node:
        async with Consumer(lambda number: 0) as consumer:
            assert (await call(node.url, subscribe(consumer.url, "A"))).status == 200
            assert (await call(node.url, notify("A", "<n/>"))).status == 202

            async def has(failing: int) -> bool:
                found = await asyncio.to_thread(scrape, node.base)
                retries = found.value("hpwsn_subscriptions_waiting_for_retry")
                return found.value("hpwsn_subscriptions_failing") == failing and retries == 0

            await eventually(lambda: has(1))
            consumer.answer = lambda number: 202
            await eventually(lambda: has(0))


def test_other_nodes_and_services_are_counted(site: Site, metrics: Scraped) -> None:
    assert metrics.value("hpwsn_routing_notifications_total", direction="sent") > 0
    assert scrape(site.other.base).value("hpwsn_routing_notifications_total", direction="received") > 0
    assert metrics.value("hpwsn_cluster_info", node="a", cluster="one") == 1
    assert metrics.value("hpwsn_cluster_nodes_alive") == 2
    assert metrics.value("hpwsn_stream_lag", service="urn:flow") == 7
    assert metrics.value("hpwsn_stream_failures_total", service="urn:flow") == 2


def test_no_topic_id_or_address_is_a_label(site: Site) -> None:
    for base in (site.node.base, site.other.base, site.admin.base):
        values = {
            (label, value)
            for family in scrape(base).families.values()
            for sample in family.samples
            for label, value in sample.labels.items()
        }
        free = {value for label, value in values if label not in ("le", "service", "version", "python")}
        assert all("/" not in value and "127.0.0.1" not in value for value in free), free
        assert {"A", "B", "id-1"} & free == set()


def test_an_admin_node_counts_its_nodes_and_their_requests(site: Site) -> None:
    found = scrape(site.admin.base)
    assert {s: found.value("hpwsn_admin_nodes", state=s) for s in ("alive", "dead", "left")} == {
        "alive": 2,
        "dead": 0,
        "left": 0,
    }
    assert found.value("hpwsn_admin_requests_total", kind="registration", code="2xx") == 2
    assert found.value("hpwsn_admin_streams") == 2
    assert found.value("hpwsn_admin_heartbeat_seconds") == 2.0
    assert found.value("hpwsn_admin_oldest_heartbeat_seconds") >= 0


@pytest.mark.parametrize("which", ["node", "admin"])
def test_openmetrics_is_answered_on_request(site: Site, which: str) -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    request = urllib.request.Request(f"{getattr(site, which).base}/metrics", headers=accept)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert "hpwsn_build" in {family.name for family in families}


async def test_status_has_latency_and_http_in_their_shapes(node: NodeProcess) -> None:
    async def status() -> dict[str, dict[str, dict[str, object]]]:
        found: dict[str, dict[str, dict[str, object]]]
        found = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
        return found

    first = await status()
    assert first["latency"] == {name: {"p50": None, "p99": None} for name in ("accept", "deliver")}
    assert set(first["http"]["connections"]) == {"fast", "full", "refused"}
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A"))

        async def measured() -> bool:
            await call(node.url, notify("A", "<n/>"))
            latency = (await status())["latency"]
            return all(isinstance(p, float) and p > 0 for one in latency.values() for p in one.values())

        await eventually(measured)
    assert (await status())["http"]["requests"]["soap"]["2xx"] >= 2  # type: ignore[operator]


async def test_a_connection_beyond_the_limit_is_counted(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "server.connections=1") as node:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        _, refused = await asyncio.open_connection("127.0.0.1", node.port)
        refused.close()
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            text = (await reader.read()).decode()
        writer.close()
    assert "\nhpwsn_http_connections_refused_total 1.0\n" in text
