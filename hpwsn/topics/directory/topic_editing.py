"""Edits of declared topics through a running node: whether they are allowed, one at a time, seen at once.

An edit changes the directory, and the node's tree follows it. `edit` returns when the tree shows the change,
or, if the directory's watcher is away, after a while. While an edit runs, the tree does not change, so that
its effect is told by the state before it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hpwsn.background import in_thread
from hpwsn.errors import HpwsnError
from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory.directory import Directory, Planner
from hpwsn.topics.directory.live_topics import LiveTopics
from hpwsn.topics.editing.edit_plan import EditPlan
from hpwsn.topics.editing.topic_edit import etag_of
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic

T = TypeVar("T")
MOST_WAITING = 4
"""The requests whose edits wait to be parsed."""


class TooManyEdits(HpwsnError):
    """Too many requests wait to be parsed; nothing was changed."""


Effect = Callable[[EditPlan], Mapping[str, int]]
"""What a plan does to topics and subscriptions, if the tree is as before it."""


class TopicEditing:
    """The one way in which this node edits its directory; `editor` is None if it only reads it."""

    def __init__(
        self, settings: TopicsSettings, directory: Directory, editor: Directory | None, live: LiveTopics
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._editor = editor
        self._live = live
        self._turn = asyncio.Lock()
        self._parsing = asyncio.Lock()
        self._waiting = 0

    def state(self) -> dict[str, Any]:
        """Return the kind of the directory, whether it can be edited here, and why not."""
        why_not = self.why_not()
        source = "ldap" if self._directory.remote else "file"
        return {"source": source, "editable": why_not is None, "why_not": why_not}

    def why_not(self) -> str | None:
        """Return why topics cannot be edited through this node, and the remedy; None if they can."""
        if self._settings.edit == "never":
            return 'topics are not edited through this node: topics.edit is "never"; set it to "auto"'
        if self._editor is None:
            return (
                "topics in LDAP are only read through this node: topics.edit_bind_dn is not set;"
                " set topics.edit_bind_dn and topics.edit_password_file"
            )
        return None if self._directory.remote else _why_not_written(Path(self._directory.source))

    def declarations(self) -> list[Declaration]:
        """Return all declared topics as the tree has them, each after its parent."""
        return sorted(self._live.known.values(), key=lambda each: len(each.topic.path))

    def entry(self, topic: Topic) -> Declaration | None:
        """Return a declared topic as the tree has it; None if it is not declared."""
        return self._live.known.get(topic)

    def etag(self, topic: Topic) -> str | None:
        """Return the etag of a declared topic; None if it is not declared."""
        found = self.entry(topic)
        return None if found is None else etag_of(found)

    def former(self, topic: Topic, etag: str | None) -> Declaration | None:
        """Return what a topic was when it had this etag; None if the node no longer knows."""
        now = self.entry(topic)
        if now is not None and etag_of(now) == etag:
            return now
        return None if etag is None else self._live.former.get((topic, etag))

    async def parse(self, parser: Callable[..., T], *args: Any) -> T:
        """Parse a request in a thread, one at a time; TooManyEdits if MOST_WAITING requests wait already."""
        if self._waiting >= MOST_WAITING:
            raise TooManyEdits(f"{self._waiting} requests that edit topics wait already; try again later")
        self._waiting += 1
        try:
            await self._parsing.acquire()
        finally:
            self._waiting -= 1
        try:
            return await in_thread(parser, *args)
        finally:
            self._parsing.release()

    async def edit(
        self, planner: Planner, effect: Effect, dry_run: bool = False
    ) -> tuple[EditPlan, Mapping[str, int]]:
        """Carry out a plan and wait until the tree shows it; return it with its effect.

        Raises EditsRefused, EditsConflict or TopicDirectoryError, and then nothing has changed, unless the
        error says so. Only to be called while `why_not` is None.
        """
        assert self._editor is not None
        thread = asyncio.to_thread if self._editor.remote else in_thread
        async with self._turn:
            async with self._live.held():
                plan = await thread(_edited, self._editor, planner, dry_run)
                told = effect(plan)
            if plan.steps and not dry_run:
                await self._live.settle(plan)
        return plan, told


def _edited(editor: Directory, planner: Planner, dry_run: bool) -> EditPlan:
    plan = editor.edit(planner, dry_run)
    plan.gone()  # compares all topics, which the event loop must not do
    return plan


def _why_not_written(file: Path) -> str | None:
    """Return why the node cannot replace a file, and the remedy; None if it can."""
    path = file.resolve()
    if os.access(path.parent, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK)):
        return None
    return f"topics are only read: the node may not write {path}; give its user the right to write there"
