"""Keeps the tree of a running node in step with its directory.

A watcher thread reads the directory. The event loop applies its reports in order and in slices, so that a
large change does not block other work. New topics are added before old ones are removed, so a moved topic is
never missing. While the directory is unreachable the tree stays; at start the saved tree is used. A tree that
accepts undeclared topics is fixed until it has its first declarations: only these say which are internal.
`on_removed` is called after topics were removed; its owner decides about subscriptions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from hpwsn.background import in_slices, in_thread
from hpwsn.listeners import Listeners
from hpwsn.topics.directory.directory import Directory
from hpwsn.topics.directory.tree_cache import TreeCache
from hpwsn.topics.editing.edit_plan import EditPlan
from hpwsn.topics.editing.topic_edit import etag_of
from hpwsn.topics.tree.declarations import Change, Declaration, Report, difference
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

SAVE_AFTER = 1.0
"""Seconds that changes are collected before the tree is saved."""
REPORTED_WITHIN = 1.0
"""Seconds that a server may take to report a change of this node, before the directory is read again."""
SETTLED_WITHIN = 10.0
"""Seconds that an edit waits for the tree if the directory cannot be read."""
MOST_FORMER = 10_000
"""Former states of topics that are remembered for conflicts."""
MOST_SHOWN = 100
"""Maximum number of skipped entries in the status."""


class LiveTopics:
    """Connects one directory with one tree."""

    def __init__(
        self,
        directory: Directory,
        tree: TopicTree[Any],
        cache: TreeCache | None,
        wait: float,
        opens: bool = False,
    ) -> None:
        self._directory = directory
        self._tree: TopicTree[Hashable] = tree
        self._cache = cache
        self._wait = wait
        self._opens = opens
        self.known: dict[Topic, Declaration] = {}
        """The declared topics of the tree; not to be changed by others."""
        self.former: dict[tuple[Topic, str], Declaration] = {}
        """Topics that were changed or removed, by their etags; only the last ones."""
        self._turn = asyncio.Condition()
        self._request = 0
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._first_report = asyncio.Event()
        self._saving: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: Report | None = None
        self._source: str | None = None
        self._changes = 0
        self.removed: Listeners[()] = Listeners("removed topics")

    def load_file(self) -> None:
        """Load the topics of a file; an unreadable file fails the start of the node."""
        if not self._directory.remote:
            self._take(self._directory.load())
            self._set_source("directory")

    async def start(self) -> None:
        """Follow the directory; returns with its topics in the tree, or with the saved ones."""
        self._loop = asyncio.get_running_loop()
        self._watch = self._directory.watch(self._from_thread)
        self._watch.start()
        self._run = self._loop.create_task(self._apply_all())
        if self._directory.remote:
            await self._first_tree()

    async def _first_tree(self) -> None:
        try:
            async with asyncio.timeout(self._wait):
                await self._first_report.wait()
        except TimeoutError:
            log.warning("the topic directory has not answered for %g s; still waiting", self._wait)
        if self._source is None and self._cache is not None:
            saved = await asyncio.to_thread(self._cache.load)
            if saved is not None and self._source is None:
                self._take(saved)
                self._set_source("saved")
                log.warning("using the %d saved topics in %s", len(saved), self._cache.path)

    def reload(self) -> None:
        """Read the directory now."""
        log.info("reloading the topic directory")
        self._watch.reload()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Apply no changes of the directory inside."""
        async with self._turn:
            yield

    async def settle(self, plan: EditPlan) -> None:
        """Wait until the tree shows an edit of this node; not for ever, if the directory cannot be read."""
        if self._directory.remote and await self._comes(lambda: plan.shown_by(self.known), REPORTED_WITHIN):
            return
        request = self._watch.reload()
        if not await self._comes(lambda: self._request >= request, SETTLED_WITHIN):
            log.warning("the topics were edited, and the tree does not show it yet: %s", self.problem())

    async def _comes(self, condition: Callable[[], bool], within: float) -> bool:
        try:
            async with asyncio.timeout(within), self._turn:
                return await self._turn.wait_for(condition)
        except TimeoutError:
            return False

    async def close(self) -> None:
        """Stop following the directory, and save unsaved changes."""
        await asyncio.to_thread(self._watch.close)
        self._run.cancel()
        await asyncio.wait([self._run, *self._tasks])
        if self._saving is not None:
            self._saving.cancel()
            await self._save()

    def problem(self) -> str | None:
        """Return why the tree may differ from the directory; None once the directory was read."""
        if self._source == "directory":
            return None
        reason = self._directory_problem() or "the topic directory has not answered yet"
        what = "the saved topics are in use" if self._source else "there are no topics"
        return f"{reason}; {what}"

    def _directory_problem(self) -> str | None:
        return None if self._last is None else self._last.problem

    def warnings(self) -> list[str]:
        """Return problems for the operator that do not affect readiness."""
        skipped = () if self._last is None else self._last.skipped
        problem = self._directory_problem()
        found = [f"{problem}; the topics do not change"] if problem and self._source == "directory" else []
        if skipped:
            found.append(
                f"{len(skipped)} entries of the topic directory are not topics, such as {skipped[0]}"
            )
        return found

    def status(self) -> dict[str, Any]:
        """Return the figures for the node's status."""
        skipped = () if self._last is None else self._last.skipped
        return {
            "source": self._source or "none",
            "address": self._directory.source,
            "open": self._tree.open,
            "connected": int(self._last is not None and self._last.problem is None),
            "problem": self._directory_problem(),
            "changes": self._changes,
            "skipped": len(skipped),
            "skipped_entries": list(skipped[:MOST_SHOWN]),
            "warnings": self.warnings(),
        }

    # In the watcher's thread

    def _from_thread(self, report: Report) -> None:
        try:
            self._loop.call_soon_threadsafe(self._reports.put_nowait, report)
        except RuntimeError:
            return  # the event loop has ended

    # In the event loop

    async def _apply_all(self) -> None:
        while True:
            report = await self._reports.get()
            async with self._turn:
                try:
                    await self._apply(report)
                except Exception:
                    log.exception("cannot apply a change of topics")
                self._request = report.request
                self._turn.notify_all()
            self._first_report.set()

    async def _apply(self, report: Report) -> None:
        self._note(report)
        if report.change is None:
            return
        first = self._source != "directory"
        change = report.change
        if report.whole and first:
            change = difference(self.known, change.declared)
        elif report.whole:
            # Only reports change the known topics from now on, so a thread can read them.
            change = await in_thread(difference, self.known, change.declared)
        if change:
            await in_slices(self._change_tree(change))
            self._changes += 1
            log.info("topics: %d declared, %d removed", len(change.declared), len(change.removed))
        self._set_source("directory")
        if change or first:
            self._save_later()
        if change.removed or first:
            self.removed()

    def _set_source(self, source: str) -> None:
        self._source = source
        if self._opens and self._tree.fixed:
            self._tree.open_up()

    def _note(self, report: Report) -> None:
        last, self._last = self._last, report
        before = None if last is None else last.problem
        if report.problem is not None and report.problem != before:
            log.warning("%s", report.problem)
        elif report.problem is None and before is not None:
            log.warning("the topic directory is reachable again")
        for entry in set(report.skipped) - set(() if last is None else last.skipped):
            log.warning("not a topic: %s", entry)

    def _change_tree(self, change: Change) -> Iterator[None]:
        for item in change.declared:
            self._declare(item)
            yield
        # Leaves first: removing a topic removes its whole subtree at once, which can be large.
        for topic in sorted(change.removed, key=lambda t: -len(t.path)):
            self._tree.remove(topic)
            self._forget(self.known.pop(topic, None))
            yield

    def _take(self, declarations: Iterable[Declaration]) -> None:
        for declaration in declarations:
            self._declare(declaration)

    def _declare(self, item: Declaration) -> None:
        self._tree.declare(item)
        self._forget(self.known.get(item.topic))
        self.known[item.topic] = item

    def _forget(self, old: Declaration | None) -> None:
        if old is not None:
            self.former[old.topic, etag_of(old)] = old
            if len(self.former) > MOST_FORMER:
                del self.former[next(iter(self.former))]

    # Saving

    def _save_later(self) -> None:
        if self._cache is not None and self._saving is None:
            self._saving = self._loop.call_later(SAVE_AFTER, self._begin_save)

    def _begin_save(self) -> None:
        self._saving = None
        task = self._loop.create_task(self._save())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _save(self) -> None:
        assert self._cache is not None
        try:
            await asyncio.to_thread(self._cache.save, list(self.known.values()))
        except OSError as error:
            log.error("cannot save the topics in %s: %s", self._cache.path, error.strerror)
