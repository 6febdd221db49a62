"""A node that watches itself: samples, the rules of alerts at their edges, and the events that it logs."""

from __future__ import annotations

import resource
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpwsn.broker.admission.backbone_arrivals import Arrivals
from hpwsn.broker.subscriptions.subscription import State
from hpwsn.door.rest.operations.subscription_items import select
from hpwsn.histogram import Timings
from hpwsn.monitoring.node_history import FIGURES
from hpwsn.node.monitor import backlog_survey
from hpwsn.node.monitor.node_findings import JUMP_TOLD, RECENT, NodeFindings
from hpwsn.node.monitor.node_monitor import NodeMonitor, until_sample
from hpwsn.node.monitor.node_sample import NodeSample
from hpwsn.node.node_parts import Parts
from hpwsn.settings import Config, DataSettings, DeadLettersSettings, JournalSettings, MonitoringSettings
from hpwsn_client.wsn.operations.filters import Filter
from hpwsn_client.wsn.operations.subscriptions import Subscribe
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.xml import Limits

MONITORING = MonitoringSettings(
    backlog=5, queue_percent=50, journal_percent=90, disk_percent=90, service_lag=100, cpu_percent=95
)


class Watched:
    """The parts of a node with an open journal, and what watches them; the time is the test's."""

    def __init__(self, folder: Path) -> None:
        self.config = Config(
            data=DataSettings(dir=str(folder)),
            monitoring=MONITORING,
            journal=JournalSettings(max_bytes=1 << 30),
            dead_letters=DeadLettersSettings(limit=100),
        )
        self.parts = Parts("n", self.config, lambda: "http://127.0.0.1:1", Limits(), Timings())
        self.now, self.wall = 1000.0, 1_700_000_000.0
        self.parts.clock = lambda: self.wall
        self.monitor = NodeMonitor(self.parts, lambda: 7)
        self.sample: NodeSample = self.monitor.sample
        self.rules: NodeFindings = self.monitor._findings

    def names(self, seconds: float = 1.0, jump: float = 0.0) -> set[str]:
        """What is found so many seconds later; the disk of this machine is not the test's."""
        return set(self.texts(seconds, jump))

    def texts(self, seconds: float = 1.0, jump: float = 0.0) -> dict[str, str]:
        """The same with the text of each."""
        self.now += seconds
        self.wall += seconds + jump
        found = {one.name: one.text for one in self.rules.look(now=self.now, wall=self.wall)}
        found.pop("DiskNearlyFull", None)
        return found

    async def subscribe(self, count: int) -> None:
        for number in range(count):
            request = Subscribe(EndpointReference(f"http://127.0.0.1:9/{number}"), Filter())
            await self.parts.subscriptions.subscribe(request, SoapVersion.SOAP11)


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    made = Watched(tmp_path / "data")
    parts = made.parts
    await parts.journal.open()
    await parts.backbone.start(parts.journal.append, Arrivals(parts.admission, Limits(), parts.clock).screen)
    yield made
    await made.sample.close()
    await parts.backbone.close()
    await parts.journal.close()
    parts.events_log.close()


async def test_a_sample_has_rates_since_the_one_before_and_the_levels_of_now(watched: Watched) -> None:
    first = watched.sample.take(10.0)
    assert first["published_rate"] is first["delivered_rate"] is first["failed_rate"] is None
    totals = watched.parts.delivery.totals
    counts = watched.parts.admission.counts
    counts[next(iter(counts))]["accepted"] += 30
    totals.delivered += 20
    totals.failures.update(timeout=3, refused=2)
    await watched.subscribe(2)
    sample = watched.sample.take(12.0)
    assert (sample["published_rate"], sample["delivered_rate"], sample["failed_rate"]) == (15, 10, 2.5)
    assert (sample["subscriptions"], sample["connections"]) == (2, 7)
    assert set(sample) <= set(FIGURES)
    assert all(sample[name] for name in ("memory", "threads", "files", "journal_bytes"))


async def test_a_report_has_rates_since_the_report_before_whatever_was_sampled_between(
    watched: Watched,
) -> None:
    watched.sample.take(10.0)
    assert watched.sample.report(10.5)["published_rate"] is None
    counts = watched.parts.admission.counts
    counts[next(iter(counts))]["accepted"] += 30
    assert watched.sample.take(11.0)["published_rate"] == 30
    assert watched.sample.take(12.0)["published_rate"] == 0
    assert watched.sample.report(12.5)["published_rate"] == 15
    assert watched.sample.report(14.5)["published_rate"] == 0
    assert watched.sample.values["published_rate"] == 0


async def test_dead_letters_are_counted_when_there_are_more_and_now_and_then(watched: Watched) -> None:
    watched.sample.take(1.0)
    await watched.sample.close()
    assert watched.sample.take(2.0)["dead_letters"] == 0
    await watched.parts.journal.bury("s", [1, 2], "gone", 1.0)
    watched.parts.delivery.totals.buried += 2
    watched.sample.take(3.0)
    await watched.sample.close()
    assert watched.sample.take(4.0)["dead_letters"] == 2
    await watched.parts.journal.drop_dead_letters_of("s")
    for second in range(5, 16):
        watched.sample.take(float(second))
        await watched.sample.close()
    assert watched.sample.take(16.0)["dead_letters"] == 0


async def test_nothing_is_wrong_with_a_new_node(watched: Watched) -> None:
    watched.sample.take(1.0)
    assert watched.names() == set()


@pytest.mark.parametrize(
    ("figure", "value", "name"),
    [
        ("journal_bytes", (1 << 30) * 0.9, "JournalNearlyFull"),
        ("dead_letters", 50, "DeadLettersNearLimit"),
        ("cpu", 0.95, "CpuSaturated"),
    ],
)
async def test_a_figure_is_wrong_from_its_threshold_on(
    watched: Watched, figure: str, value: float, name: str
) -> None:
    watched.sample.values = {figure: value * 0.999}
    assert watched.names() == set()
    watched.sample.values = {figure: value}
    assert watched.names() == {name}


@pytest.mark.parametrize(("used", "found"), [(899, False), (900, True)])
async def test_a_disk_is_nearly_full_from_its_threshold_on(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, used: int, found: bool
) -> None:
    told = SimpleNamespace(total=1100, used=used, free=1000 - used)  # 100 are kept for root
    monkeypatch.setattr(shutil, "disk_usage", lambda path: told)
    names = {one.name for one in watched.rules.look(now=1.0, wall=1.0)}
    assert ("DiskNearlyFull" in names) == found


async def test_dead_letters_grow_until_none_was_added_for_five_minutes(watched: Watched) -> None:
    assert watched.names() == set()
    watched.parts.delivery.totals.buried += 1
    assert watched.names() == {"NewDeadLetters"}
    assert watched.names(RECENT - 1) == {"NewDeadLetters"}
    assert watched.names() == set()


async def test_dropped_notifications_are_told_for_five_minutes(watched: Watched) -> None:
    watched.parts.delivery.totals.dropped += 3
    assert watched.names() == {"NotificationsDropped"}
    assert watched.names(RECENT) == set()


async def test_open_files_near_their_limit_are_told(watched: Watched) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    watched.sample.values = {"files": limit * 0.8 - 1}
    assert watched.names() == set()
    watched.sample.values = {"files": limit * 0.8}
    assert watched.names() == {"DescriptorsShort"}


async def test_a_clock_that_jumps_is_told_for_a_while(watched: Watched) -> None:
    assert watched.names() == set()
    assert watched.names(jump=1.9) == set()
    assert watched.names(jump=-2.1) == {"ClockJumped"}
    assert watched.names(JUMP_TOLD - 1) == {"ClockJumped"}
    assert watched.names() == set()


async def test_services_that_lag_or_fall_silent_are_told(watched: Watched) -> None:
    services = watched.parts.services
    services._clock = lambda: watched.wall
    service = {"topic": "A", "instance": "one"}
    services.register("urn:flow", {**service, "figures": {"lag": 99}})
    assert watched.names() == set()
    services.register("urn:flow", {**service, "figures": {"lag": 100}})
    assert watched.names() == {"ServicesLagging"}
    assert watched.names(watched.config.streams.silent_after) == {"ServicesSilent"}


async def test_queues_are_surveyed_in_parts_and_the_worst_is_named(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_survey, "STEP", 3)
    await watched.subscribe(7)
    survey = watched.sample.backlogs
    subscriptions = list(watched.parts.subscriptions)
    for waiting, subscription in enumerate(subscriptions):
        subscription.cursor.beyond = waiting
        subscription.queue_limit = 10
    subscriptions[1].paused = True
    for failed in subscriptions[:3]:
        failed.progress.first_failure = 1.0
        failed.progress.last_error = "refused"
    survey.step()
    survey.step()
    assert survey.result.waiting == 0
    survey.step()
    found = survey.result
    assert found.waiting == sum(range(7))
    assert (found.behind.count, found.behind.waiting) == (2, 6)
    assert (found.nearly_full.count, found.nearly_full.subscription) == (2, subscriptions[6].id)
    # For the first nothing waits, and the second is paused.
    assert (found.failing.count, found.failing.error) == (1, "refused")
    assert watched.sample.failing == 1
    third, last = subscriptions[2], subscriptions[6]
    assert watched.texts() == {
        "ConsumersFailing": f"1 consumer fails; it is {third.request.consumer.address}: refused, 2 waiting,"
        f" subscription {third.id}",
        "ConsumersBehind": "2 subscriptions with 5 or more waiting notifications; the worst is"
        f" {last.request.consumer.address}, 6 waiting, subscription {last.id}",
        "QueuesNearLimit": "2 queues near the limit; the worst is"
        f" {last.request.consumer.address}, 6 waiting, subscription {last.id}",
    }
    await watched.parts.subscriptions.end_all(subscriptions)
    survey.step()
    assert survey.result.waiting == 0
    assert watched.names() == set()


async def test_the_survey_counts_states_as_the_list_of_subscriptions_does(watched: Watched) -> None:
    await watched.subscribe(5)
    subscriptions = list(watched.parts.subscriptions)
    failing, paused, _, away, ended = subscriptions
    for each in (failing, paused, ended):
        each.cursor.offer(10)
    for each in (failing, paused, away, ended):
        each.progress.first_failure = 1.0
    paused.paused = True
    ended.state = State.ENDED
    watched.sample.backlogs.step()
    counts = watched.sample.backlogs.result.counts()
    assert counts == {"live": 2, "paused": 1, "retrying": 1, "expired": 1}
    assert counts == select(subscriptions, "", None)[1]


async def test_a_paused_subscription_is_not_behind(watched: Watched) -> None:
    await watched.subscribe(1)
    (subscription,) = watched.parts.subscriptions
    subscription.cursor.beyond = 5
    watched.sample.backlogs.step()
    assert watched.names() == {"ConsumersBehind"}
    subscription.paused = True
    watched.sample.backlogs.step()
    assert watched.names() == set()


async def test_a_part_that_is_away_and_back_is_logged_once_each(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem: list[str | None] = [None]
    monkeypatch.setattr(watched.parts.backbone, "problem", lambda: problem[0])
    watched.parts.alerts.raised.add(watched.monitor._events._raised)
    for told in (None, "no answer", "no answer", None, None):
        problem[0] = told
        watched.wall += 1
        watched.monitor.look()
    texts = [event.text for event in watched.parts.events_log.newest_first() if "backbone" in event.text]
    assert texts == ["the backbone is back", "the backbone is away: no answer"]
    assert "BackboneAway" in [finding.name for finding, _ in watched.parts.alerts]


@pytest.mark.parametrize(
    ("now", "pause"), [(7.0, 0.5), (7.5, 1.0), (7.6, 0.9), (7.4999, 1.0001), (7.39, 0.11), (7.45, 1.05)]
)
def test_a_timer_that_ends_early_does_not_bring_two_samples_of_a_second(now: float, pause: float) -> None:
    assert until_sample(now) == pytest.approx(pause)
