"""The kill test: a node under load is killed with SIGKILL again and again, and must lose nothing it accepted.

Publishers send all the time, also while the node is down. A push consumer, a push consumer behind a content
filter and a pull point read. Each round starts the node on the same data and port and kills it at a moment
drawn by a seeded generator: while it starts, right after an answer of 202, or anywhere under load. In the
end the node is left alone until everything accepted has arrived. `scripts/kill-test` runs it with any number
of rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.faults.load import Inbox, Key, Publisher, PullReader, Verdict, judge, stored
from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually, patience
from tests.raw_soap import XPATH

MOMENTS = ("while it started", "right after a 202", "under load")
LONGEST_START = 1.2
LONGEST_RUN = 0.8
MOST_ANSWERS = 60
PULL_PAUSE = 0.1
THIRD = f'<w:MessageContent Dialect="{XPATH}">@i mod 3 = 0</w:MessageContent>'
SETTINGS = ("--set", "delivery.retry_first=0.02", "--set", "delivery.retry_max=0.2")


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of one run."""

    rounds: dict[str, int]
    verdicts: tuple[Verdict, ...]
    unknown: int
    repeated: int
    refused: int
    stored: int
    stored_twice: int

    @property
    def lost(self) -> int:
        """Over all readers."""
        return sum(verdict.lost for verdict in self.verdicts)

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {moment}" for moment, count in self.rounds.items())
        rows = [("reader", "accepted", "received", "lost", "duplicates", "out of order")]
        rows += [
            (v.reader, *map(str, (v.accepted, v.received, v.lost, v.duplicates, v.disordered)))
            for v in self.verdicts
        ]
        lines = [f"{row[0]:<16}" + "".join(f"{cell:>14}" for cell in row[1:]) for row in rows]
        return "\n".join(
            [
                *lines,
                f"rounds: {sum(self.rounds.values())}, killed {kills}",
                f"publishers: {self.unknown} notifications without an answer, {self.refused} refused, "
                f"{self.repeated} requests sent again under their id",
                f"journal: {self.stored} entries, {self.stored_twice} stored twice",
            ]
        )


class KillTest:
    """One run in a folder of its own."""

    def __init__(
        self, folder: Path, *, rounds: int, publishers: int = 4, seed: int = 1, ids: bool = False
    ) -> None:
        self.node = NodeProcess(folder / "data", *SETTINGS, port=quiet_port(), fresh=True)
        self.kills = dict.fromkeys(MOMENTS, 0)
        self._rounds = rounds
        self._random = random.Random(seed)
        url = f"http://127.0.0.1:{self.node.port}/wsn"
        self._publishers = [Publisher(n, url, seed=seed, ids=ids) for n in range(publishers)]
        self._pull = PullReader()

    async def run(self) -> Report:
        """All rounds, the wait for the rest, and the counts."""
        async with Inbox() as push, Inbox() as third:
            with contextlib.closing(self.node):
                await asyncio.to_thread(self.node.start)
                await push.subscribe(self.node.url)
                await third.subscribe(self.node.url, filters=THIRD)
                await self._pull.create(self.node.url)
                async with self._load():
                    await self._kill_many()
                await self._wait_for_all(push, third)
                await asyncio.to_thread(self.node.terminate)
            return self._report(push, third)

    @contextlib.asynccontextmanager
    async def _load(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for publisher in self._publishers:
                tasks.create_task(publisher.run(stop))
            tasks.create_task(self._pull_until(stop))
            try:
                yield
            finally:
                stop.set()

    async def _pull_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._pull.fetch()
            await asyncio.sleep(PULL_PAUSE)

    async def _kill_many(self) -> None:
        for _ in range(self._rounds):
            moment = self._random.choice(MOMENTS)
            if moment == MOMENTS[0]:
                await self._kill_at_start()
            elif moment == MOMENTS[1]:
                await self._kill_after_answer()
            else:
                await asyncio.sleep(self._random.uniform(0, LONGEST_RUN))  # The moment is what is random.
                await asyncio.to_thread(self.node.kill)
                await asyncio.to_thread(self.node.start)
            self.kills[moment] += 1

    async def _kill_at_start(self) -> None:
        """Kill the node that runs, and its successor before or around the moment when that is ready."""
        await asyncio.to_thread(self.node.kill)
        starting = asyncio.create_task(asyncio.to_thread(self.node.start))
        await asyncio.wait([starting], timeout=self._random.uniform(0.05, LONGEST_START))
        assert self.node.process is not None
        self.node.process.kill()
        try:
            await starting
        except AssertionError:
            if self.node.process.returncode != -signal.SIGKILL:
                raise
        await asyncio.to_thread(self.node.kill)
        await asyncio.to_thread(self.node.start)

    async def _kill_after_answer(self) -> None:
        publisher = self._random.choice(self._publishers)
        async with patience():
            for _ in range(self._random.randint(1, MOST_ANSWERS)):
                publisher.answered.clear()
                await publisher.answered.wait()
        assert self.node.process is not None
        self.node.process.kill()
        await asyncio.to_thread(self.node.kill)
        await asyncio.to_thread(self.node.start)

    def accepted(self) -> list[Key]:
        """All that was answered 202."""
        return [key for publisher in self._publishers for key in publisher.accepted]

    async def _wait_for_all(self, push: Inbox, third: Inbox) -> None:
        """Wait for what was accepted; where something is missing in the end, the counts say so."""
        wanted = self.accepted()

        async def pulled() -> bool:
            return not await self._pull.fetch() and set(wanted) <= set(self._pull.keys)

        with contextlib.suppress(TimeoutError):
            await push.wait_for(wanted)
            await third.wait_for(thirds(wanted))
            await eventually(pulled)

    def _report(self, push: Inbox, third: Inbox) -> Report:
        accepted = self.accepted()
        entries = stored(self.node.data)
        return Report(
            rounds=self.kills,
            verdicts=(
                judge("push", accepted, push.keys()),
                judge("content filter", thirds(accepted), third.keys()),
                judge("pull point", accepted, self._pull.keys),
            ),
            unknown=sum(len(publisher.unknown) for publisher in self._publishers),
            repeated=sum(publisher.repeated for publisher in self._publishers),
            refused=sum(len(publisher.refused) for publisher in self._publishers),
            stored=entries.total(),
            stored_twice=entries.total() - len(entries),
        )


def thirds(keys: Iterable[Key]) -> list[Key]:
    """What the content filter lets through."""
    return [key for key in keys if key.number % 3 == 0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; 0 if nothing was lost and nothing came out of order."""
    parser = argparse.ArgumentParser(prog="kill-test", description="Kills a node under load and counts.")
    parser.add_argument("--rounds", type=int, default=50, help="how often to kill (default: 50)")
    parser.add_argument("--publishers", type=int, default=4, help="how many publish at once (default: 4)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and the load (default: 1)")
    parser.add_argument(
        "--ids", action="store_true", help="give every Notify a MessageId, and repeat those without an answer"
    )
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="kill-test-") as folder:
        test = KillTest(
            Path(folder), rounds=asked.rounds, publishers=asked.publishers, seed=asked.seed, ids=asked.ids
        )
        report = asyncio.run(test.run())
    print(report)
    once = not asked.ids or report.stored_twice == 0
    return 0 if once and all(verdict.good for verdict in report.verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
