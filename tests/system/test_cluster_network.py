"""Two nodes of a cluster with a bad network between them: what may be lost, and what must not."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.tools.lossy_relay import LossyRelay
from lxml import etree

from hpwsn_client import Client, Receiver
from tests.cluster import AdminProcess, Member
from tests.patience import PATIENCE

TEXT = "".join(f"{number:09d} " for number in range(60_000))


@dataclass
class Network:
    """Two nodes, each behind a relay of its own, with a publisher at one and a subscriber at the other."""

    relays: list[LossyRelay]
    publisher: Client
    subscriber: Client
    receiver: Receiver
    pieces: list[etree._Element] = field(default_factory=list)

    def becomes(self, *, loss: float = 0.0, twice: float = 0.0, late: float = 0.0, cut: bool = False) -> None:
        """Have the network do this from now on."""
        for relay in self.relays:
            relay.loss, relay.twice, relay.late, relay.cut = loss, twice, late, cut
            if cut:
                relay.cut_connections()

    async def publish(self, topic: str, count: int, *, reliable: bool) -> None:
        """Publish so many numbers."""
        for number in range(count):
            await self.publisher.notify(topic, f"<n>{number}</n>", reliable=reliable)

    async def take(self, topic: str, count: int, others: Counter[tuple[str, int]]) -> list[int]:
        """So many numbers of a topic; what comes beside them is counted."""
        found: list[int] = []
        while len(found) < count:
            received = await self.receiver.get(timeout=PATIENCE)
            if received.topic == "N:pieces":
                self.pieces.append(etree.fromstring(received.payload))
                continue
            number = int(received.payload.split(b">")[1].split(b"<")[0])
            if received.topic == topic:
                found.append(number)
            else:
                others[str(received.topic), number] += 1
        return found

    def pieces_are_some_of(self, text: str) -> None:
        """Some pieces of a large one were lost, and the others were handed out, each once."""
        indexes = [int(piece.get("index")) for piece in self.pieces]
        length = max(len(piece.text) for piece in self.pieces)
        last = (len(text) - 1) // length
        assert len(set(indexes)) == len(indexes)
        # How many depends on the pacing, too: some may still wait when the network is cut.
        assert 1 < len(indexes) <= last
        for index, piece in zip(indexes, self.pieces, strict=True):
            assert piece.get("more") == ("0" if index == last else "1")
            assert piece.text == text[index * length : (index + 1) * length]

    async def connects(self) -> None:
        """Publish probes until one has come."""
        probe = asyncio.create_task(self.receiver.get(timeout=PATIENCE))
        while not probe.done():
            await self.publisher.notify("N:probe", "<n>0</n>")
            await asyncio.wait([probe], timeout=0.1)


@asynccontextmanager
async def network(folder: Path) -> AsyncIterator[Network]:
    async with AsyncExitStack() as stack:
        admin = stack.enter_context(AdminProcess(folder / "admin"))
        relays, clients = [], []
        for name in ("a", "b"):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            relay = LossyRelay(("127.0.0.1", port))
            stack.push_async_callback(relay.close)
            host, public = await relay.start()
            settings = (f"routing.port={port}", f"routing.public={host}:{public}", "routing.resend_after=1")
            given = [part for each in settings for part in ("--set", each)]
            node = Member(folder / name, name, "one", admin.base, *given)
            stack.callback(node.close)
            await asyncio.to_thread(node.start)
            relays.append(relay)
            clients.append(await stack.enter_async_context(Client(node.url)))
        receiver = await stack.enter_async_context(Receiver())
        yield Network(relays, *clients, receiver)


async def test_a_bad_network_loses_some_of_best_effort_and_nothing_reliable_and_doubles_neither(
    tmp_path: Path,
) -> None:
    async with network(tmp_path) as between:
        others: Counter[tuple[str, int]] = Counter()
        await between.subscriber.subscribe("N", between.receiver)
        await between.connects()

        between.becomes(loss=0.1, twice=0.1, late=0.2)
        await between.publish("N:lossy", 300, reliable=False)
        await between.publisher.notify("N:pieces", TEXT, partial=True)
        await between.publish("N:sure", 300, reliable=True)
        assert sorted(await between.take("N:sure", 300, others)) == list(range(300))

        between.becomes(cut=True)
        await between.publish("N:cut", 50, reliable=True)
        between.becomes()
        assert sorted(await between.take("N:cut", 50, others)) == list(range(50))

        await between.publish("N:end", 1, reliable=True)
        await between.take("N:end", 1, others)
        between.pieces_are_some_of(TEXT)
        lossy = Counter({key: count for key, count in others.items() if key[0] == "N:lossy"})
        assert 150 < len(lossy) < 300
        assert {key: count for key, count in others.items() if count > 1 and key[0] != "N:probe"} == {}
