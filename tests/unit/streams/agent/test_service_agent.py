"""POST and DELETE of a failed service at the same time, errors of the disk, and who sees a log.

The agent runs real jobs whose Python does not exist, so they fail at once.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hpwsn.settings import StreamsSettings
from hpwsn.streams.agent.definition_check import CheckedService
from hpwsn.streams.agent.job_folder import JobFolder
from hpwsn.streams.agent.service_agent import HIDDEN_LOG, AgentClosed, ServiceAgent, ServiceExists
from tests.patience import holds

URI = "urn:a"
SERVICE = CheckedService(URI, "t", "", {}, {}, {}, {"diagram": []})


@pytest.fixture
async def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServiceAgent]:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    settings = StreamsSettings(agent=True, restarts=0)
    agent = ServiceAgent(tmp_path, settings, heard=lambda _: None, token_file=tmp_path / "job.token")
    await agent.start("http://127.0.0.1:9/wsn")
    yield agent
    await agent.close()


def folder_of(tmp_path: Path) -> JobFolder:
    return JobFolder.of(tmp_path, URI, None)


async def fail(agent: ServiceAgent, with_token: bool = False) -> None:
    """Run the service until it has failed."""
    await agent.run("text", SERVICE, with_token)
    await holds(lambda: agent.summary(URI)["state"] == "failed")


class Held:
    """A function that waits in its thread until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        original = getattr(JobFolder, name)

        def held(*arguments: object) -> object:
            self.entered.set()
            self.go_on.wait(60)
            return original(*arguments)

        monkeypatch.setattr(JobFolder, name, held)

    async def reached(self) -> None:
        await holds(self.entered.is_set)


async def test_a_service_that_is_being_stopped_cannot_be_started(
    agent: ServiceAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fail(agent)
    removal = Held(monkeypatch, "remove")
    delete = asyncio.create_task(agent.remove(URI))
    await removal.reached()
    with pytest.raises(ServiceExists, match="is stopping urn:a"):
        await agent.run("text", SERVICE)
    again = asyncio.create_task(agent.remove(URI))
    removal.go_on.set()
    assert await delete
    assert await again
    assert URI not in agent
    assert not folder_of(tmp_path).path.exists()
    await fail(agent)
    assert folder_of(tmp_path).definition.exists()


async def test_a_delete_waits_for_a_post_and_stops_what_it_starts(
    agent: ServiceAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fail(agent)
    creation = Held(monkeypatch, "create")
    post = asyncio.create_task(agent.run("new", SERVICE))
    await creation.reached()
    delete = asyncio.create_task(agent.remove(URI))
    with pytest.raises(ServiceExists, match="already runs urn:a"):
        await agent.run("text", SERVICE)
    creation.go_on.set()
    await post
    assert await delete
    assert URI not in agent
    assert not folder_of(tmp_path).path.exists()


async def test_a_failed_service_that_cannot_be_replaced_stays_and_can_be_deleted(
    agent: ServiceAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fail(agent)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(JobFolder, "create", full)
        with pytest.raises(OSError, match="No space left"):
            await agent.run("new", SERVICE)
    assert agent.summary(URI)["state"] == "failed"
    assert folder_of(tmp_path).definition.read_text() == "text"
    # A DELETE whose files cannot be removed can be repeated.
    with monkeypatch.context() as patch:
        patch.setattr(JobFolder, "remove", full)
        with pytest.raises(OSError, match="No space left"):
            await agent.remove(URI)
    assert agent.summary(URI)["state"] == "stopping"
    assert await agent.remove(URI)
    assert not await agent.remove(URI)
    assert not folder_of(tmp_path).path.exists()


async def test_a_delete_while_the_node_stops_says_so(
    agent: ServiceAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fail(agent)
    removal = Held(monkeypatch, "remove")
    delete = asyncio.create_task(agent.remove(URI))
    await removal.reached()
    await agent.close()
    removal.go_on.set()
    with pytest.raises(AgentClosed, match="the node stops"):
        await delete


async def test_the_log_of_a_job_with_the_token_is_for_clients_with_the_token(
    agent: ServiceAgent, tmp_path: Path
) -> None:
    await fail(agent, with_token=True)
    with folder_of(tmp_path).log.open("a") as job:
        job.write("hpwsn: error: cannot read B34C91\n\tat java.Main\n")
    assert await agent.details(URI, with_token=False) == {
        "plan": SERVICE.plan,
        "reason": None,
        "log": [],
        "log_note": HIDDEN_LOG,
    }
    seen = await agent.details(URI, with_token=True)
    assert (seen["reason"], seen["log_note"]) == ("cannot read B34C91", None)
    assert seen["log"][-2:] == ["hpwsn: error: cannot read B34C91", "\tat java.Main"]
    # Replaced by somebody without the token: the log of before is gone.
    await fail(agent)
    seen = await agent.details(URI, with_token=False)
    assert seen["log_note"] is None
    assert seen["log"]
    assert "B34C91" not in str(seen)
