"""Three islands without links, and carriers that move between them by a seeded schedule.

Carriers lose bundles, deliver them twice, and bring damaged and forged ones; islands are killed, also while
they take a bundle in. In the end every subscriber has every notification once, in the order of its origin.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError

import pytest

from tests import raw_soap
from tests.islands import Island, collect, deliver, refused
from tests.patience import until
from tests.raw_soap import call, subscribe

NAMES = ("valley", "summit", "coast")
CARRIERS = ("ranger", "herder")
TOPICS = ("wind", "rain")
STEPS = 100
MANY = 1000


@dataclass
class Carrier:
    """Where a carrier is, and the bundles that it has with the names of the nodes that they are for."""

    name: str
    place: str
    bundles: list[tuple[Path, str]] = field(default_factory=list)


class Archipelago:
    """The islands, the carriers, and what was published."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.islands = {name: Island(folder, name).start() for name in NAMES}
        self.carriers = [Carrier(name, NAMES[0]) for name in CARRIERS]
        self.published: dict[str, list[tuple[str, int]]] = {topic: [] for topic in TOPICS}
        self.done: Counter[str] = Counter()
        self._files = 0

    def close(self) -> None:
        for island in self.islands.values():
            island.close()

    def file(self) -> Path:
        self._files += 1
        return self.folder / f"{self._files}.bundle"

    def publish(self, name: str, count: int) -> None:
        topic = self.chance.choice(TOPICS)
        numbers = range(len(self.published[topic]), len(self.published[topic]) + count)
        self.islands[name].publish(topic, *[[name, number] for number in numbers])
        self.published[topic] += [(name, number) for number in numbers]
        self.done["accepted"] += count

    def step(self) -> None:
        carrier = self.chance.choice(self.carriers)
        actions = (
            (self.publish_somewhere, 4),
            (self.collect, 8),
            (self.move, 4),
            (self.deliver, 8),
            (self.lose, 1),
            (self.spoil, 2),
            (self.kill, 1),
        )
        (action,) = self.chance.choices([one for one, _ in actions], [weight for _, weight in actions])
        action(carrier)

    def publish_somewhere(self, carrier: Carrier) -> None:
        self.publish(self.chance.choice(NAMES), self.chance.randint(1, 5))

    def collect(self, carrier: Carrier) -> None:
        to = self.chance.choice([name for name in NAMES if name != carrier.place])
        options = ["--carrier", carrier.name]
        if self.chance.random() < 0.3:
            options += ["--max-bytes", "2000"]
        if self.chance.random() < 0.2:
            options.append("--again")
        file = self.file()
        collect(self.islands[carrier.place], file, to, *options)
        carrier.bundles.append((file, to))
        self.done["collected"] += 1

    def move(self, carrier: Carrier) -> None:
        carrier.place = self.chance.choice([name for name in NAMES if name != carrier.place])

    def deliver(self, carrier: Carrier) -> None:
        """Any bundle of the carrier, whoever it is for; the carrier may keep it and bring it again."""
        if carrier.bundles:
            bundle = self.chance.choice(carrier.bundles)
            found = deliver(self.islands[carrier.place], bundle[0])
            self.done.update(found)
            self.done["delivered"] += 1
            if bundle[1] == carrier.place and self.chance.random() < 0.5:
                carrier.bundles.remove(bundle)

    def lose(self, carrier: Carrier) -> None:
        if carrier.bundles:
            carrier.bundles.remove(self.chance.choice(carrier.bundles))
            self.done["lost"] += 1

    def spoil(self, carrier: Carrier) -> None:
        """Bring a bundle with a changed byte, or the end of another one; it must change nothing."""
        if not carrier.bundles:
            return
        data = bytearray(self.chance.choice(carrier.bundles)[0].read_bytes())
        at = self.chance.randrange(len(data))
        data[at] ^= self.chance.randint(1, 255)
        if self.chance.random() < 0.3:
            del data[at:]
        file, island = self.file(), self.islands[carrier.place]
        file.write_bytes(data)
        before = island.carried
        assert "nothing was published" in refused(island, file)
        assert island.carried == {**before, "refused": before["refused"] + 1}
        self.done["refused"] += 1

    def kill(self, carrier: Carrier) -> None:
        island = self.islands[self.chance.choice(NAMES)]
        island.kill()
        island.start()
        self.done["killed"] += 1

    def kill_while_delivering(self, carrier: Carrier, source: str, target: str) -> None:
        """Kill an island while it takes a bundle in; the carrier does not know how far it came."""
        self.publish(source, MANY)
        file, island = self.file(), self.islands[target]
        collect(self.islands[source], file, target, "--again")
        before = island.carried["published"]

        def bring() -> None:
            with suppress(URLError, ConnectionError):
                island.ask("POST", "/dtn/deliver", file.read_bytes(), "application/octet-stream")

        bringing = threading.Thread(target=bring)
        bringing.start()
        until(lambda: island.carried["published"] > before)
        island.kill()
        bringing.join()
        island.start()
        carrier.bundles.append((file, target))
        self.done["killed while delivering"] += 1

    def bring_the_rest(self) -> None:
        """Two rounds of a carrier to everybody with all that is lacking."""
        for _ in range(2):
            for source in NAMES:
                for target in NAMES:
                    if source != target:
                        file = self.file()
                        collect(self.islands[source], file, target, "--again")
                        deliver(self.islands[target], file)


async def pull_point(island: Island, topic: str) -> str:
    """A subscriber that fetches its notifications."""
    address = (await call(island.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await call(island.url, subscribe(address, topic))
    return address


async def fetched(address: str) -> list[tuple[str, int]]:
    """All notifications of a subscriber, as island and number."""
    found: list[tuple[str, int]] = []
    while messages := (await call(address, "<w:GetMessages/>")).content.findall(
        ".//w:Message", raw_soap.NAMES
    ):
        for message in messages:
            name, number = [text for text in message.itertext() if text.strip()]
            found.append((name, int(number)))
    return found


@pytest.mark.parametrize("seed", [2, 3])
async def test_every_subscriber_gets_every_notification_once_in_the_order_of_its_origin(
    tmp_path: Path, seed: int
) -> None:
    sea = Archipelago(tmp_path, seed)
    try:
        subscribers = {
            (name, topic): await pull_point(island, topic)
            for name, island in sea.islands.items()
            for topic in TOPICS
        }
        for number in range(STEPS):
            sea.step()
            if number in (STEPS // 3, 2 * STEPS // 3):
                source, target = sea.chance.sample(NAMES, 2)
                sea.kill_while_delivering(sea.carriers[0], source, target)
        sea.bring_the_rest()
        for (name, topic), address in subscribers.items():
            found = await fetched(address)
            assert sorted(found) == sorted(sea.published[topic]), (name, topic, sea.done)
            for origin in NAMES:
                numbers = [number for source, number in found if source == origin]
                assert numbers == sorted(numbers), (name, topic, origin)
        assert all(island.carried["held"] == island.carried["gaps"] == 0 for island in sea.islands.values())
        assert {"lost", "refused", "killed", "killed while delivering"} <= sea.done.keys()
        assert sea.done["repeated"] > 0
        assert sea.done["held"] > 0
        print(f"seed {seed}: {dict(sorted(sea.done.items()))}")
    finally:
        sea.close()
