"""Jobs of services run while their virtual sensor is used, also after failures and restarts."""

from __future__ import annotations

import asyncio
import logging

import pytest

from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.virtual.service_jobs import RETRY_AFTER, ServiceJobs
from tests.unit.sensors.virtual.virtual_field import template
from tests.virtual_time import run


class Host:
    """Runs services, slowly, and fails as often as it is told."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.calls: list[str] = []
        self.failures = 0

    async def check(self, text: str, topic: str) -> None:
        self.calls.append(f"check {text} on {topic}")
        if text == "bad":
            raise SensorRefused("it is bad")

    async def run(self, text: str) -> None:
        await self._step(f"run {text}")
        assert text not in self.running
        self.running.add(text)

    async def stop(self, text: str) -> None:
        await self._step(f"stop {text}")
        self.running.discard(text)

    async def _step(self, call: str) -> None:
        self.calls.append(call)
        await asyncio.sleep(1)
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is full")


def test_a_node_without_a_host_refuses_templates_with_a_service() -> None:
    jobs = ServiceJobs(None)
    with pytest.raises(SensorRefused, match=r"set streams.agent = true, or leave service out"):
        run(jobs.check(template(service="x")))


def test_the_host_checks_a_service_with_its_topic() -> None:
    host = Host()
    jobs = ServiceJobs(host)
    run(jobs.check(template("hall", service="x")))
    with pytest.raises(SensorRefused, match="it is bad"):
        run(jobs.check(template("hall", service="bad")))
    assert host.calls == ["check x on virtual:hall", "check bad on virtual:hall"]


def test_nothing_starts_before_the_host_takes_requests() -> None:
    async def test() -> None:
        host = Host()
        jobs = ServiceJobs(host)
        jobs.want("hall", "x")
        await asyncio.sleep(20)
        assert host.calls == []
        jobs.start()
        await asyncio.sleep(20)
        assert (host.calls, host.running) == (["run x"], {"x"})

    run(test())


def test_a_service_is_stopped_when_it_is_not_wanted_any_more_and_replaced_by_another() -> None:
    async def test() -> None:
        host = Host()
        jobs = ServiceJobs(host)
        jobs.start()
        jobs.want("hall", "x")
        await asyncio.sleep(5)
        jobs.want("hall", "y")
        await asyncio.sleep(5)
        assert host.running == {"y"}
        jobs.forget("hall")
        jobs.forget("nobody")
        await asyncio.sleep(5)
        assert host.calls == ["run x", "stop x", "run y", "stop y"]

    run(test())


def test_what_changes_while_a_job_starts_is_seen_to_when_it_has_started() -> None:
    async def test() -> None:
        host = Host()
        jobs = ServiceJobs(host)
        jobs.start()
        jobs.want("hall", "x")
        await asyncio.sleep(0.5)
        jobs.forget("hall")
        jobs.want("hall", "y")
        jobs.forget("hall")
        await asyncio.sleep(10)
        assert (host.calls, host.running) == (["run x", "stop x"], set())
        jobs.want("hall", "x")
        await asyncio.sleep(0.5)
        jobs.forget("hall")
        jobs.want("hall", "x")
        await asyncio.sleep(10)
        assert (host.calls[2:], host.running) == (["run x"], {"x"})

    run(test())


def test_what_fails_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        host = Host()
        host.failures = 2
        jobs = ServiceJobs(host)
        jobs.start()
        jobs.want("hall", "x")
        await asyncio.sleep(2.5 * RETRY_AFTER)
        assert (host.calls, host.running) == (["run x"] * 3, {"x"})
        host.failures = 1
        jobs.forget("hall")
        await asyncio.sleep(2 * RETRY_AFTER)
        assert (host.calls[3:], host.running) == (["stop x"] * 2, set())

    with caplog.at_level(logging.WARNING):
        run(test())
    assert caplog.text.count("the service of virtual sensor hall: the disk is full; trying again") == 2


def test_a_change_while_a_failure_is_waited_for_is_made_without_the_failed_step() -> None:
    async def test() -> None:
        host = Host()
        host.failures = 1
        jobs = ServiceJobs(host)
        jobs.start()
        jobs.want("hall", "x")
        await asyncio.sleep(2)
        jobs.want("hall", "y")
        await asyncio.sleep(2 * RETRY_AFTER)
        assert (host.calls, host.running) == (["run x", "run y"], {"y"})

    run(test())


def test_after_a_restart_the_job_of_an_idle_one_is_stopped_and_that_of_a_used_one_runs() -> None:
    async def test() -> None:
        host = Host()
        host.running = {"x"}
        jobs = ServiceJobs(host)
        jobs.want("used", "y")
        jobs.begin([template("idle", service="x"), template("plain")])
        jobs.start()
        await asyncio.sleep(5)
        assert (sorted(host.calls), host.running) == (["run y", "stop x"], {"y"})

    run(test())


def test_after_close_jobs_go_on_and_nothing_is_started_or_stopped() -> None:
    async def test() -> None:
        host = Host()
        jobs = ServiceJobs(host)
        jobs.start()
        jobs.want("hall", "x")
        await asyncio.sleep(5)
        await jobs.close()
        assert (host.calls, host.running) == (["run x"], {"x"})
        jobs.want("roof", "y")
        await jobs.close()
        await asyncio.sleep(5)
        assert "y" not in host.running

    run(test())
