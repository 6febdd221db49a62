"""`hpwsn streams run` with real Spark and a real node: what is pushed to a SOAP consumer is what the
reference computes, whatever is killed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp

from hpwsn.streams.definition.schema import json_of
from hpwsn.streams.definition_files import load
from hpwsn.streams.generator import anpr, gps
from hpwsn.streams.plan.plan import compute
from tests.consumer import Consumer
from tests.harness import ROOT, NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, subscribe
from tests.spark import cheap_environment
from tests.stream_jobs import JobProcess, as_json, logged, publish, undo_last_commit, written

EXAMPLES = ROOT / "hpwsn" / "streams" / "examples"
FLOW, BUSIEST, GPS = (EXAMPLES / f"{name}.toml" for name in ("genTrafficFlow", "busiest", "inteGPS"))
FLEETS = ("buses", "taxis", "lorries")

SMALL = ("--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1")


def records(number: int) -> list[dict[str, Any]]:
    """Records of cameras, and one of much later, which ends all windows before it."""
    events = list(islice(anpr(seed=9), number))
    last = events[-1]
    events.append({**last, "time": last["time"] + timedelta(hours=1)})
    return as_json(events)


def pushed(consumer: Consumer) -> Counter[str]:
    """The events that were pushed, each as sorted JSON of its texts."""
    events = (
        {child.tag: child.text for child in m.iterfind(".//{urn:hpwsn:1}event/*")}
        for m in consumer.messages()
    )
    return Counter(map(written, events))


def counted(events: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(map(written, events))


async def test_the_examples_lose_nothing_and_repeat_nothing_when_job_and_node_are_killed(
    tmp_path: Path,
) -> None:
    flow, busiest, integrated = load(FLOW, BUSIEST, GPS)
    fleets = {fleet: as_json(islice(gps(seed=9, fleet=fleet), 200)) for fleet in FLEETS}
    places = compute(integrated, fleets)
    given = records(1500)
    flows = compute(flow, {"anpr": given})
    # The last record's own window stays open.
    flows = [event for event in flows if json_of(event["time"]) < given[-1]["time"][:16]]
    peaks = compute(busiest, {"flows": flows})
    spark = cheap_environment(tmp_path / "conf")
    with NodeProcess(tmp_path / "node", "--set", "journal.id_window=1s") as node:
        async with Consumer() as consumer, Consumer() as second:
            await call(node.url, subscribe(consumer.url, "traffic:flow"))
            await call(node.url, subscribe(second.url, "traffic:busiest"))
            await publish(node, "traffic:anpr", given[:1000])
            for fleet, positions in fleets.items():
                await publish(node, f"fleet:{fleet}", positions)
            arguments = (str(FLOW), str(BUSIEST), str(GPS), "--rows", "400", *SMALL)
            with JobProcess(tmp_path, spark, node, *arguments) as job:
                await job.brings(consumer.wait(lambda c: bool(c.requests)))
                job.kill()
            undo_last_commit(tmp_path / "checkpoints")
            before = len(consumer.messages())
            with JobProcess(tmp_path, spark, node, *arguments) as job:
                await job.brings(consumer.wait(lambda c: len(c.messages()) > before))
                # In good order, since a node that is killed may push again what it has pushed already.
                node.terminate()
                node.start()
                await publish(node, "traffic:anpr", given[1000:])
                await job.brings(consumer.wait(lambda c: len(c.messages()) >= len(flows)))
                await job.brings(second.wait(lambda c: len(c.messages()) >= len(peaks)))

                async def all_run() -> bool:
                    states = {one["uri"]: one["state"] for one in await services(node)}
                    return states == dict.fromkeys((flow.uri, busiest.uri, integrated.uri), "running")

                await eventually(all_run)
                assert job.terminate() == 0, job.log.read_text()
            assert counted(await logged(node, "traffic:flow")) == counted(flows)
            assert pushed(consumer) == counted(flows)
            assert pushed(second) == counted(peaks)
            assert counted(await logged(node, "traffic:gps")) == counted(places)
        assert {one["state"] for one in await services(node)} == {"stopped"}
        assert "rows/s" in job.log.read_text()


async def services(node: NodeProcess) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.get(f"{node.base}/streams") as answer:
        found: list[dict[str, Any]] = (await answer.json())["items"]
        return found
