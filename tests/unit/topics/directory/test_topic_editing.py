"""Requests that edit topics are parsed one at a time, only a few wait, and no plan holds the event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory.live_topics import LiveTopics
from hpwsn.topics.directory.topic_editing import MOST_WAITING, TooManyEdits, TopicEditing
from hpwsn.topics.directory.topic_file import FileDirectory
from hpwsn.topics.editing.edit_plan import EditPlan, plan_edits
from hpwsn.topics.editing.topic_edit import TopicEdit
from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic


def editing_of(file: Path) -> TopicEditing:
    directory = FileDirectory(file, optional=True)
    live = LiveTopics(directory, TopicTree(), None, 1.0)
    return TopicEditing(TopicsSettings(), directory, directory, live)


async def test_the_event_loop_never_compares_all_topics_of_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    original = EditPlan.declarations

    def declarations(plan: EditPlan) -> list[Declaration]:
        threads.append(threading.get_ident())
        return original(plan)

    monkeypatch.setattr(EditPlan, "declarations", declarations)
    edits = [TopicEdit("add", Topic.parse("A:B"))]
    _, told = await editing_of(tmp_path / "topics.toml").edit(
        lambda known: plan_edits(known, edits),
        lambda plan: {"gone": len(plan.gone()), "hidden": len(plan.hidden()), "made": len(plan.made())},
        dry_run=True,
    )
    assert told == {"gone": 0, "hidden": 0, "made": 2}
    assert threads
    assert threading.get_ident() not in threads


async def test_one_request_is_parsed_while_a_few_wait_and_others_are_refused(tmp_path: Path) -> None:
    editing = editing_of(tmp_path / "topics.toml")
    started, go = threading.Event(), threading.Event()
    running = most = 0

    def parse(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        started.set()
        go.wait(10)
        running -= 1
        return number

    first = asyncio.create_task(editing.parse(parse, 0))
    await asyncio.to_thread(started.wait, 10)
    waiting = [asyncio.create_task(editing.parse(parse, each)) for each in range(1, MOST_WAITING + 1)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyEdits, match=f"{MOST_WAITING} requests that edit topics wait already"):
        await editing.parse(parse, 99)
    waiting.pop().cancel()
    await asyncio.sleep(0)
    waiting.append(asyncio.create_task(editing.parse(parse, MOST_WAITING)))
    go.set()
    assert await asyncio.gather(first, *waiting) == list(range(MOST_WAITING + 1))
    assert most == 1
