"""Requests that edit topics are parsed one at a time, and only a few wait."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory.live_topics import LiveTopics
from hpwsn.topics.directory.topic_editing import MOST_WAITING, TooManyEdits, TopicEditing
from hpwsn.topics.directory.topic_file import FileDirectory
from hpwsn.topics.tree.tree import TopicTree


async def test_one_request_is_parsed_while_a_few_wait_and_others_are_refused(tmp_path: Path) -> None:
    directory = FileDirectory(tmp_path / "topics.toml", optional=True)
    live = LiveTopics(directory, TopicTree(), None, 1.0)
    editing = TopicEditing(TopicsSettings(), directory, directory, live)
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
