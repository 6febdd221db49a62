"""Publishes the results of virtual sensors on their topics, in order, once each.

Results are notifications that the node makes itself: registrations and queue limits do not apply to them.
While the node cannot store anything they wait in memory, at most WAITING of them; the oldest go first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable

from hpwsn.broker.admission.admission import Admission, Source
from hpwsn.notification import END, Run
from hpwsn.sensors.templates.result import Result
from hpwsn_client.wsn.formats.json_events import encode_event
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.soap.faults import Busy, SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

log = logging.getLogger(__name__)

SOURCE = Source(door="sensors")
WAITING = 100_000
BATCH = 1000
"""Results in one append."""
PAUSE = 1.0
"""Seconds after which a refused append is tried again."""


class ResultPublisher:
    """A queue of results, and the task that publishes them while there are any."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._waiting: deque[tuple[Topic, Result]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._refused: set[Topic] = set()
        self.published = 0
        self.dropped = 0
        """Results on topics that are unknown, and those that were too many while nothing was stored."""

    def publish(self, results: Iterable[tuple[Topic, Result]]) -> None:
        """Publish results after all earlier ones; returns at once."""
        self._waiting.extend(results)
        while len(self._waiting) > WAITING:
            self._waiting.popleft()
            self.dropped += 1
        if self._waiting and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Publish what waits, unless nothing can be stored."""
        task = self._task
        if task is not None:
            await asyncio.wait([task], timeout=PAUSE)
            task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._publish_some()
        except Exception:
            log.exception("results of virtual sensors were not published")
        finally:
            self._task = None

    async def _publish_some(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        runs = {each: run for each in taken if (run := self._run_of(*each))}
        if not runs:
            return
        try:
            await self._admission.append(list(runs.values()), SOURCE)
        except BaseException as error:
            self._waiting.extendleft(reversed(runs))
            if not isinstance(error, Busy):
                raise
            await asyncio.sleep(PAUSE)
        else:
            self.published += len(runs)

    def _run_of(self, topic: Topic, result: Result) -> Run | None:
        content, start, _ = encode_content(NotificationMessage(TopicExpression.of_message(topic), b""))
        try:
            run = Run(topic, content[:start], encode_event(result.event()) + END, 1)
            self._admission.admit_own(run)
        except SoapFault as fault:
            self.dropped += 1
            if topic not in self._refused:
                log.warning("the results of %s are not published: %s", topic, fault)
                self._refused.add(topic)
            return None
        self._refused.discard(topic)
        return run
