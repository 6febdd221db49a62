"""The files in scripts/deploy/prometheus, as promtool and a real Prometheus take them."""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from hpwsn_client import SyncClient
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.patience import PATIENCE, until
from tests.prometheus import FILES, Prometheus, dashboard_queries, promtool
from tests.raw_soap import call, subscribe

FLOW = {"topic": "flow", "instance": "1", "figures": {"lag": 7, "rows_per_second": 1.5}}


def alerts(file: Path) -> list[str]:
    return re.findall(r"\balert(?:name)?: (\w+)", file.read_text())


def test_promtool_accepts_the_configuration_and_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml")
    assert "SUCCESS" in promtool("check", "rules", "hpwsn-alerts.yml")


def test_every_alert_fires_when_it_should_and_not_before() -> None:
    tests = yaml.safe_load((FILES / "hpwsn-alerts-test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    quiet = {
        case["alertname"] for test in tests for case in test["alert_rule_test"] if not case["exp_alerts"]
    }
    assert fired == quiet == set(alerts(FILES / "hpwsn-alerts.yml"))
    assert "SUCCESS" in promtool("test", "rules", "hpwsn-alerts-test.yml")


def test_every_metric_of_the_alerts_and_the_dashboard_exists_in_the_documents() -> None:
    documented = (FILES.parents[2] / "docs" / "metrics.md").read_text()
    used = set(re.findall(r"\b(?:hpwsn|process)_\w+", (FILES / "hpwsn-alerts.yml").read_text()))
    used |= {name for query in dashboard_queries() for name in re.findall(r"\b(?:hpwsn|process)_\w+", query)}
    missing = {name for name in used if f"`{name.removesuffix('_bucket')}`" not in documented}
    assert missing == set()


def test_the_documents_name_every_alert() -> None:
    page = (FILES.parents[2] / "docs" / "metrics.md").read_text()
    assert [name for name in alerts(FILES / "hpwsn-alerts.yml") if f"`{name}`" not in page] == []


@contextmanager
def load(url: str) -> Iterator[None]:
    """Notifications without a pause."""
    ended = threading.Event()

    def publish() -> None:
        with SyncClient(url) as client:
            while not ended.is_set():
                client.notify("A", "<n/>")

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def address(process: Member | AdminProcess) -> str:
    return process.base.removeprefix("http://")


async def test_a_real_prometheus_answers_every_query_of_the_dashboard_with_data(tmp_path: Path) -> None:
    """It scrapes two nodes under load, with a stream service, and their admin node."""
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "a", "a", "one", admin.base) as one,
        Member(tmp_path / "b", "b", "one", admin.base) as two,
        Prometheus(
            tmp_path / "prometheus", hpwsn=[address(one), address(two)], hpwsn_admin=[address(admin)]
        ) as prometheus,
    ):
        async with Consumer() as near, Consumer() as far:
            await call(one.url, subscribe(near.url, "A"))
            await call(two.url, subscribe(far.url, "A"))
            await asyncio.to_thread(register, one, "urn:flow")
            with load(one.url):
                await asyncio.to_thread(watch, prometheus)


def watch(prometheus: Prometheus) -> None:
    """Wait until every query of the dashboard has a value, and look at the alerts."""

    def unanswered() -> list[str]:
        return [
            query
            for query in dashboard_queries()
            if not any(math.isfinite(value) for value in prometheus.values(query))
        ]

    until(lambda: not unanswered(), lambda: f"{unanswered()}\n{prometheus.log()}")
    until(lambda: {rule["health"] for rule in prometheus.rules()} == {"ok"})
    assert {rule["name"] for rule in prometheus.rules()} == set(alerts(FILES / "hpwsn-alerts.yml"))
    targets = prometheus.ask("targets")["activeTargets"]
    assert {target["health"] for target in targets} == {"up"}
    assert {target["lastError"] for target in targets} == {""}
    active = {rule["name"] for rule in prometheus.rules() if rule["alerts"]}
    assert not {"HpwsnDown", "HpwsnNotReady"} & active


def register(node: Member, uri: str) -> None:
    """Register a stream service as its job does."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{node.base}/streams/{uri.replace(':', '%3A')}", json.dumps(FLOW).encode(), headers, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200
