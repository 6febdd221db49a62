"""Records of both services at a fixed rate, posted to the topics of a node as JSON lines.

A POST leaves when it is due, whether or not earlier ones are answered, and its records carry this time as
`sent`: a node that falls behind has the waiting in its latency. Records repeat after a while, each time with
another `sent`, so that the deliveries that must follow are known exactly.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.services.random_requests import SERVICES, Request, Service, matches, random_records
from benchmarks.tools.load import CONNECTIONS, Flow, connect

RECORDS = 2000
"""Different records of a service."""
POSTS = 200
"""POSTs in a second; fewer where there are fewer events."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent: the times of its first and last POST, in microseconds, and what must be delivered."""

    first: int
    last: int
    events: int
    deliveries: int


class Feed:
    """POSTs of both services in turn, to the topics of their results or of their sources."""

    def __init__(
        self, base: str, rate: float, requests: Sequence[Request], *, raw: bool, seed: int = 1
    ) -> None:
        self._base, self.rate = base, rate
        self.together = max(1, round(rate / POSTS))
        self._requests = [
            self._posts(service, [one for one in requests if one.service is service], raw, seed)
            for service in SERVICES
        ]
        self.accepted = 0

    def _posts(
        self, service: Service, requests: Sequence[Request], raw: bool, seed: int
    ) -> list[tuple[str, bytes, int]]:
        """For each POST its topic, its body with room for the times, and the deliveries that it causes."""
        records = random_records(service, RECORDS, seed)
        wanted = np.zeros(RECORDS, np.int64)
        for held in matches(requests, records):
            wanted += held
        topics = service.sources if raw else (service.topic,)
        found = []
        for number, first in enumerate(range(0, RECORDS - self.together + 1, self.together)):
            some = records[first : first + self.together]
            lines = "\n".join(json.dumps(each)[:-1] + ', "sent": %d}' for each in some).encode()
            count = int(wanted[first : first + self.together].sum())
            found.append((topics[number % len(topics)], lines, count))
        return found

    async def send(self, seconds: float) -> Sent:
        """Send for so long; waits at most as long again for the answers."""
        flow = Flow([b""], 1, ())
        flow.hold()
        await connect(self._base, flow)
        try:
            sent = await self._send(flow, seconds)
            end = time.monotonic() + max(1.0, seconds)
            posts = sent.events // self.together
            while flow.accepted < posts and not flow.failure and time.monotonic() < end:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            self.accepted = flow.accepted * self.together
        finally:
            flow.finish()
        return sent

    async def _send(self, flow: Flow, seconds: float) -> Sent:
        period = self.together / self.rate
        count = max(2, round(seconds / period))
        began, deliveries, due = time.time() + 0.01, 0, 0
        first = round(began * 1e6)
        for number in range(count):
            at = began + number * period
            pause = at - time.time()
            # A loop that is late must still read the answers.
            await asyncio.sleep(max(0.0, pause))
            due = round(at * 1e6)
            posts = self._requests[number % 2]
            topic, lines, wanted = posts[number // 2 % len(posts)]
            deliveries += wanted
            body = lines % ((due,) * self.together)
            flow.publishers[number % CONNECTIONS].transport.write(_post(topic, body))
        return Sent(first, due + 1, count * self.together, deliveries)


def _post(topic: str, body: bytes) -> bytes:
    head = (
        f"POST /topics/{topic}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
    )
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
