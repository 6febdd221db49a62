"""Readers over a real journal, joined as a node joins them, and long connections that stay in the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hpwsn.broker.readers.feeds import Feeds
from hpwsn.broker.readers.live_delivery import LiveDelivery
from hpwsn.broker.readers.log_pages import Stretch, encode_once
from hpwsn.broker.readers.log_readers import Query, Readers
from hpwsn.broker.readers.pace import Pace
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.journal import Journal
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.node.content_engines import NEVER, BrokerEngines
from hpwsn.notification import Run, members
from hpwsn.topics.tree.tree import TopicTree
from tests.patience import holds
from tests.runs import run_of


class Log:
    """A journal, a tree and their readers."""

    def __init__(self, journal: Journal, subtree: bool) -> None:
        self.journal = journal
        self.tree: TopicTree[Subscription] = TopicTree(simple_subtree=subtree)
        self.head = 0
        self.content = ContentFilters()
        self.live = LiveDelivery(Feeds(self.content, lambda topics: BrokerEngines(NEVER)))
        self.readers = Readers(
            journal, self.tree, lambda: self.head, live=self.live, content=self.content, subtree=subtree
        )
        journal.committed.add(self._commit)

    def _commit(self, first: int, runs: Sequence[Run]) -> None:
        for offset, notification in enumerate(members(runs), first):
            if notification.topic is not None:
                self.tree.retain(notification.topic, offset)
            self.head = offset
        self.readers.committed(first, runs)

    async def publish(self, topic: str | None, *texts: str, target: str | None = None) -> None:
        """Append one notification for each text."""
        payloads = [f"<m><n>{text}</n></m>".encode() for text in texts]
        await self.journal.append([run_of(topic, payload, target=target) for payload in payloads])

    async def publish_run(self, topic: str, *payloads: bytes) -> None:
        """Append one run."""
        await self.journal.append([run_of(topic, *payloads)])


@asynccontextmanager
async def opened(folder: Path, subtree: bool = True) -> AsyncIterator[Log]:
    """A new journal with its readers."""
    journal = Journal(folder / "data" / "journal.db", reserve=0)
    await journal.open()
    try:
        yield Log(journal, subtree)
    finally:
        await journal.close()


class TextForm:
    """A line for each entry: offset and text. `encoded` are the offsets that were encoded, in order."""

    def __init__(self) -> None:
        self.encoded: list[int] = []

    def encode(self, stretches: Sequence[Stretch]) -> list[bytes]:
        self.encoded += [offset for each in stretches for offset in each.offsets]
        payloads = [payload for each in stretches for payload in each.payloads]
        return [payload.split(b"<n>")[1].split(b"<")[0] for payload in payloads]

    def frame(self, offset: int, data: bytes) -> bytes:
        return b"%d %b\n" % (offset, data)

    def skipped(self, count: int, upto: int) -> bytes:
        return b"%d skipped %d\n" % (upto, count)

    def block(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(frames)


class Client:
    """A connection that takes what is written, unless it is told to be slow."""

    def __init__(self, form: TextForm) -> None:
        self.form = form
        self.pace: Pace | None = None
        self.data: list[bytes] = []
        self.writes = 0
        self.pages: list[int] = []
        """The number of entries in each page from the log."""
        self.beats = 0
        self._quick = asyncio.Event()
        self._quick.set()
        self.closed = False

    def be_slow(self, slow: bool = True) -> None:
        """Take nothing, or take again."""
        if slow:
            self._quick.clear()
        else:
            self._quick.set()

    @property
    def slow(self) -> bool:
        return not self._quick.is_set()

    def write(self, block: bytes) -> bool:
        if self.closed:
            raise ConnectionResetError
        if self._quick.is_set():
            self.data.append(block)
            self.writes += 1
        return self._quick.is_set()

    def keep_alive(self) -> bool:
        self.beats += self._quick.is_set()
        return self._quick.is_set()

    async def send(self, stretches: Sequence[Stretch]) -> None:
        data = await encode_once(stretches, self.form.encode)
        offsets = [offset for each in stretches for offset in each.offsets]
        self.pages.append(len(offsets))
        await self.drained()
        self.data.append(self.form.block(list(map(self.form.frame, offsets, data))))

    async def drained(self) -> None:
        if self.closed:
            raise ConnectionResetError
        await self._quick.wait()

    @property
    def entries(self) -> list[tuple[int, str]]:
        """The offset and the text of each entry."""
        lines = b"".join(self.data).decode().splitlines()
        return [(int(offset), text) for offset, text in (line.split(" ", 1) for line in lines)]

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.entries]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.entries]

    async def has(self, count: int) -> None:
        """Wait until so many entries have come."""
        await holds(lambda: len(self.entries) >= count)


@asynccontextmanager
async def following(
    log: Log,
    query: Query,
    after: int,
    beat: float = 60,
    form: TextForm | None = None,
    pace: Pace | None = None,
) -> AsyncIterator[Client]:
    """A client while the block runs."""
    client = Client(form or TextForm())
    client.pace = pace
    task = asyncio.ensure_future(log.readers.follow(query, after, beat, client))
    try:
        yield client
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def is_live(log: Log, count: int = 1) -> None:
    """Wait until so many followers are live."""
    await holds(lambda: len(list(log.live._feeds)) >= count)
