"""A load that can be accounted for: publishers number what they send, and readers keep what they get.

Every notification has a key: its publisher, its topic, and a number that grows by one for each pair of these.
What was answered 202 is accepted; what ended in an error of the connection is unknown, since it may have been
stored. `judge` compares what was accepted with what arrived.
"""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aiohttp
from lxml import etree

from tests.consumer import Answer, Consumer
from tests.patience import PATIENCE
from tests.raw_soap import NAMES, SIMPLE, TYPES, Reply, call, envelope, subscribe

ROOT_TOPIC = "faults"
TOPICS = 3
PACE = 0.004
"""Seconds between two requests of a publisher: enough for a steady load, little enough for two cores."""
RETRY_PAUSE = 0.02
"""Seconds until a publisher knocks again at a port where nobody listens."""

_KEY = re.compile(rb"<m i=\"\d+\">(\d+)\.(\d+)\.(\d+)</m>")


class Key(NamedTuple):
    """One notification of the load."""

    publisher: int
    topic: int
    number: int

    @property
    def payload(self) -> str:
        """What is published for it; the attribute is for content filters."""
        return f'<m i="{self.number}">{self.publisher}.{self.topic}.{self.number}</m>'


def find_keys(body: bytes) -> list[Key]:
    """The keys in a Notify or in the answer to GetMessages, which must be whole XML."""
    messages = etree.fromstring(body).iterfind(".//w:NotificationMessage/w:Message", NAMES)
    return [Key(*map(int, "".join(message[0].itertext()).split("."))) for message in messages]


def notify_keys(keys: Sequence[Key], message_id: str | None = None) -> bytes:
    """A Notify of these."""
    messages = "".join(
        f'<w:NotificationMessage><w:Topic Dialect="{SIMPLE}">{ROOT_TOPIC}:t{key.topic}</w:Topic>'
        f"<w:Message>{key.payload}</w:Message></w:NotificationMessage>"
        for key in keys
    )
    header = "" if message_id is None else f'<h:MessageId xmlns:h="urn:hpwsn:1">{message_id}</h:MessageId>'
    return envelope(f"<w:Notify>{messages}</w:Notify>", headers=header)


class Publisher:
    """Sends one Notify after the other over a kept-alive connection, and notes what became of each.

    With ids, what is unknown is sent again under its id until it is answered.
    """

    def __init__(self, number: int, url: str, *, seed: int = 0, ids: bool = False) -> None:
        self.number = number
        self.url = url
        self.accepted: list[Key] = []
        self.unknown: list[Key] = []
        self.refused: list[Key] = []
        self.repeated = 0
        self.answered = asyncio.Event()
        """Set with every 202; whoever waits for the next one clears it."""
        self._random = random.Random(f"{seed}/{number}")
        self._ids = ids
        self._requests = 0
        self._next = [0] * TOPICS

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until told to stop."""
        connector = aiohttp.TCPConnector(limit=1)
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            while not stop.is_set():
                await self.publish(session)
                await asyncio.sleep(PACE)

    async def publish(self, session: aiohttp.ClientSession) -> int | None:
        """Send the next Notify; its status, or None where nobody knows."""
        keys = [self._key() for _ in range(self._random.choice((1, 1, 2, 3)))]
        self._requests += 1
        id_ = f"{self.number}-{self._requests}" if self._ids else None
        status = await self._post(session, notify_keys(keys, id_))
        {None: self.unknown, 202: self.accepted}.get(status, self.refused).extend(keys)
        if status == 202:
            self.answered.set()
        return status

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> int | None:
        while True:
            try:
                async with session.post(self.url, data=body, headers={"Content-Type": TYPES["1.1"]}) as reply:
                    await reply.read()
                    return reply.status
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(RETRY_PAUSE)  # Nobody listened, so nothing was sent.
            except (aiohttp.ClientError, OSError):
                if not self._ids:
                    return None
                self.repeated += 1

    def _key(self) -> Key:
        topic = self._random.randrange(TOPICS)
        self._next[topic] += 1
        return Key(self.number, topic, self._next[topic])


class Inbox(Consumer):
    """A push consumer that knows the keys it got, in order of arrival."""

    def __init__(self, answer: Answer = lambda number: 202) -> None:
        super().__init__(answer)
        self._read = 0
        self._keys: list[Key] = []

    def keys(self) -> list[Key]:
        """All so far; each request is looked at once."""
        for body in self.requests[self._read :]:
            self._keys += find_keys(body)
        self._read = len(self.requests)
        return self._keys

    def firsts(self) -> list[Key]:
        """As `keys`, without what came again: on a busy machine an answer may be too late for the node."""
        return list(dict.fromkeys(self.keys()))

    async def wait_for(self, keys: Iterable[Key]) -> None:
        """Wait until all of these have arrived."""
        wanted = set(keys)
        await self.wait(lambda inbox: wanted <= set(self.keys()))

    async def subscribe(self, url: str, *, filters: str = "") -> str:
        """Subscribe to the load; the subscription's address."""
        reply = await call(url, subscribe(self.url, ROOT_TOPIC, filters=filters))
        assert reply.status == 200, reply.body
        return reply.text("w:SubscriptionReference/a:Address")


class PullReader:
    """A pull point with a subscription to the load, emptied now and then."""

    def __init__(self) -> None:
        self.address = ""
        self.keys: list[Key] = []

    async def create(self, url: str) -> None:
        """Make the pull point and subscribe it."""
        self.address = (await call(url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        reply = await call(url, subscribe(self.address, ROOT_TOPIC))
        assert reply.status == 200, reply.body

    async def fetch(self, maximum: int = 500) -> int:
        """Take the next messages; how many they were."""
        asked = f"<w:GetMessages><w:MaximumNumber>{maximum}</w:MaximumNumber></w:GetMessages>"
        reply: Reply = await call(self.address, asked)
        assert reply.status == 200, reply.body
        got = find_keys(reply.body)
        self.keys += got
        return len(got)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was promised to one reader beside what it got."""

    reader: str
    accepted: int
    received: int
    lost: int
    duplicates: int
    disordered: int

    @property
    def good(self) -> bool:
        """Whether all that was accepted came at least once, and in order."""
        return self.lost == 0 and self.disordered == 0


def judge(reader: str, accepted: Iterable[Key], arrived: Sequence[Key]) -> Verdict:
    """Compare; the order is that of first arrivals, for each publisher and topic."""
    promised, firsts = set(accepted), dict.fromkeys(arrived)
    lost, duplicates = len(promised - firsts.keys()), len(arrived) - len(firsts)
    return Verdict(reader, len(promised), len(arrived), lost, duplicates, _disordered(firsts))


def _disordered(firsts: Iterable[Key]) -> int:
    last: dict[tuple[int, int], int] = {}
    count = 0
    for publisher, topic, number in firsts:
        count += number < last.get((publisher, topic), 0)
        last[publisher, topic] = number
    return count


def stored(data: Path) -> Counter[Key]:
    """How often each key is in the journal of a node that has stopped; a row may hold a run of them."""
    with closing(sqlite3.connect(f"{(data / 'journal.db').absolute().as_uri()}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT content FROM log")
        return Counter(Key(*map(int, found)) for (content,) in rows for found in _KEY.findall(content))
