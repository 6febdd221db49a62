"""GET /readings of a real node: everything accepted is there once, in order, whatever happens between."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow.parquet as pq
import pytest

from tests.harness import NodeProcess, environment, hpwsn
from tests.patience import eventually, until

NOW = (datetime.now(UTC) - timedelta(hours=2)).replace(minute=5, second=0, microsecond=0)
"""So that no test goes over midnight."""
PNG, SVG = b"\x89PNG\r\n", b"<?xml"
SENSORS = [
    {
        "id": f"w{n}",
        "kind": "weather" if n < 3 else "sea",
        "quantities": {"temperature": {"unit": "degC"}, "wind": {"unit": "m/s"}},
        "place": {"longitude": 10 * n, "latitude": 5},
    }
    for n in range(1, 4)
] + [{"id": "here", "kind": "weather", "quantities": {"temperature": {"unit": "degC"}}}]


def at(seconds: float) -> str:
    """A time that many seconds after NOW, as an event has it."""
    return (NOW + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def reading(n: float, sensor: str = "w1", **values: float) -> dict[str, Any]:
    return {"sensor": sensor, "time": at(n), **(values or {"temperature": float(n)})}


class Field:
    """What a gateway and a reader do at a node."""

    def __init__(self, node: NodeProcess, session: aiohttp.ClientSession) -> None:
        self.node = node
        self.session = session

    async def register(self) -> None:
        async with self.session.post(f"{self.node.base}/sensors", json=SENSORS) as response:
            assert response.status == 201, await response.text()

    async def send(self, *readings: Mapping[str, Any]) -> None:
        async with self.session.post(f"{self.node.base}/readings", json=list(readings)) as response:
            told = await response.json()
            assert (response.status, told["rejected"]) == (202, 0), told

    async def get(self, accept: str = "application/json", **query: Any) -> tuple[int, bytes, Any]:
        """The status, the body and the headers of GET /readings."""
        asked = [(name.rstrip("_"), value) for name, value in query.items()]
        flat = [(name, each) for name, value in asked for each in (value if type(value) is list else [value])]
        url = f"{self.node.base}/readings"
        async with self.session.get(url, params=flat, headers={"Accept": accept}) as response:
            return response.status, await response.read(), response.headers

    async def items(self, **query: Any) -> list[dict[str, Any]]:
        """All of them, however many pages they have."""
        return await self.pages(1000, **query)

    async def names(self, **query: Any) -> list[tuple[str, float]]:
        """The sensors and temperatures of the items."""
        return [(each["sensor"], each.get("temperature")) for each in await self.items(**query)]

    async def pages(self, limit: int, **query: Any) -> list[dict[str, Any]]:
        found, after = [], {}
        while True:
            status, body, _ = await self.get(limit=limit, **after, **query)
            assert status == 200, body
            page = json.loads(body)
            assert len(page["items"]) <= limit
            found += page["items"]
            if page["next"] is None:
                return found
            after = {"after": page["next"]}

    async def events(self, topic: str) -> list[dict[str, Any]]:
        """What subscribers of a topic got."""
        url = f"{self.node.base}/topics/{topic}/events"
        async with self.session.get(url, params={"after": 0, "max": 1000}) as response:
            assert response.status == 200, await response.text()
            return [event["data"] for event in await response.json()]


@asynccontextmanager
async def field_of(node: NodeProcess) -> AsyncIterator[Field]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield Field(node, session)


@asynccontextmanager
async def field_at(folder: Path, *arguments: str) -> AsyncIterator[Field]:
    """A node of its own, with its sensors registered."""
    with NodeProcess(folder / "data", *arguments) as node:
        async with field_of(node) as field:
            await field.register()
            yield field


def restart(field: Field) -> None:
    """End the node as an operator does, and start it again: then all readings are in files."""
    assert field.node.terminate() == 0
    field.node.start()


def files_of(field: Field) -> list[Path]:
    return sorted((field.node.data / "readings").rglob("*.parquet"))


async def test_items_are_the_events_before_and_after_they_are_in_files(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(reading(2), reading(0.25, "w3", wind=1.5), reading(1, "here"))
        await field.send(reading(-1, "w2", temperature=-0.5, wind=0.0))
        events = sorted(await field.events("sensors"), key=lambda event: event["time"])
        assert len(events) == 4
        assert await field.items() == events
        assert not files_of(field)
        restart(field)
        assert files_of(field)
        assert await field.items() == events
        await field.send(reading(0.5))
        assert [item["time"] for item in await field.items()] == [at(n) for n in (-1, 0.25, 0.5, 1, 2)]


async def test_readings_are_parquet_files_by_day_and_kind_within_ten_seconds(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(reading(0), reading(1, "w3"))
        until(lambda: len(files_of(field)) == 2)
        found = {
            str(file.parent.relative_to(field.node.data)): pq.read_table(file) for file in files_of(field)
        }
        day = at(0)[:10]
        assert set(found) == {f"readings/day={day}/kind=weather", f"readings/day={day}/kind=sea"}
        assert found[f"readings/day={day}/kind=weather"].column("temperature").to_pylist() == [0.0]
        assert len(await field.items()) == 2


@pytest.mark.parametrize("in_files", [False, True])
async def test_each_parameter_chooses_and_all_together(in_files: bool, tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(*(reading(n, sensor) for n in range(3) for sensor in ("w1", "w2", "w3", "here")))
        if in_files:
            restart(field)
        assert await field.names(sensor="w2") == [("w2", 0.0), ("w2", 1.0), ("w2", 2.0)]
        assert await field.names(sensor=["w3", "here"], from_=at(2)) == [("w3", 2.0), ("here", 2.0)]
        assert {name for name, _ in await field.names(kind="weather")} == {"w1", "w2", "here"}
        assert {name for name, _ in await field.names(area="15,0,180,90")} == {"w2", "w3"}
        assert {name for name, _ in await field.names(area="30,0,10,90")} == {"w1", "w3"}
        assert await field.names(sensor="w1", from_=at(1), to=at(2)) == [("w1", 1.0)]
        assert await field.names(sensor="w1", from_=at(0.001), to=at(1.001)) == [("w1", 1.0)]
        assert await field.names(from_=at(2), to=at(2)) == []
        shifted = datetime.fromisoformat(at(1)).astimezone(UTC) + timedelta(hours=2)
        zoned = shifted.isoformat().replace("+00:00", "+02:00")
        assert await field.names(sensor="w1", from_=zoned, to=at(2)) == [("w1", 1.0)]
        assert await field.names(filter="temperature > 1 and sensor != 'w3'", kind="weather") == [
            ("w1", 2.0),
            ("w2", 2.0),
            ("here", 2.0),
        ]
        assert await field.names(filter="exists(longitude) and temperature in (0, 1)", sensor="w3") == [
            ("w3", 0.0),
            ("w3", 1.0),
        ]
        assert await field.names(filter="//temperature = 2", dialect="xpath", sensor="w1") == [("w1", 2.0)]
        assert await field.names(
            sensor=["w1", "w2"], kind="weather", area="0,0,15,10", from_=at(1), filter="temperature < 2"
        ) == [("w1", 1.0)]
        assert await field.names(sensor="nothing") == []
        assert await field.names(sensor="", kind="", area="", from_="", to="", filter="", virtual="") == [
            (sensor, float(n)) for n in range(3) for sensor in ("w1", "w2", "w3", "here")
        ]


async def test_csv_has_the_same_items_and_a_link_to_the_rest(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(reading(0), reading(1, "here"), reading(2, "w2", wind=2.5))
        items = await field.items()
        status, body, headers = await field.get("text/csv")
        assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
        assert "Link" not in headers
        rows = list(csv.DictReader(io.StringIO(body.decode())))
        assert rows == [
            {
                name: str(item.get(name, ""))
                for name in ("sensor", "kind", "time", "longitude", "latitude", "temperature", "wind")
            }
            for item in items
        ]
        assert (await field.get("text/csv", sensor="nothing"))[1] == b"\n"
        _, first, headers = await field.get(format="csv", limit=2, kind="weather")
        assert len(first.splitlines()) == 3
        link = headers["Link"].removeprefix("<").removesuffix('>; rel="next"')
        async with field.session.get(f"{field.node.base}{link}") as response:
            assert (await response.text()).splitlines()[1].startswith("w2,weather,")
            assert "Link" not in response.headers


async def test_pages_lose_and_repeat_nothing_while_readings_come(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        # Several sensors measure at once, so that pages end between equal times.
        before = [reading(n, sensor) for n in range(100) for sensor in ("w1", "w2", "here")]
        random.Random(7).shuffle(before)
        await field.send(*before[:200])
        restart(field)
        await field.send(*before[200:])
        sent = 0

        async def go_on() -> None:
            """Send readings before and after all others, one at a time."""
            nonlocal sent
            for _ in range(200):
                sent += 1
                await field.send({"sensor": "w3", "time": at(-sent / 1000), "temperature": -1.0})
                await field.send({"sensor": "w3", "time": at(100 + sent / 1000), "temperature": -1.0})

        expected = [each["time"] for each in sorted(before, key=lambda each: each["time"])]
        for limit in (1, 7, 1000):
            sending = asyncio.create_task(go_on())
            found = await field.pages(limit)
            assert [item["time"] for item in found if item["sensor"] != "w3"] == expected
            assert [item["time"] for item in found] == sorted(item["time"] for item in found)
            assert len({(item["sensor"], item["time"]) for item in found}) == len(found)
            await sending
        assert len(await field.items()) == 300 + 2 * 600


async def test_results_of_a_virtual_sensor_are_kept_as_they_were_published(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        wanted = {
            "kind": "weather",
            "quantity": "temperature",
            "every": "1 s",
            "silence": "null",
            "bands": [{"name": "mild", "low": 10, "high": 30}, {"name": "warm", "low": 20}],
        }
        async with field.session.put(f"{field.node.base}/virtual/warmth", json=wanted) as response:
            assert response.status == 201, await response.text()
        stream = {"Accept": "text/event-stream"}
        url = f"{field.node.base}/topics/virtual:warmth/events"
        async with field.session.get(url, headers=stream) as response:
            assert response.status == 200

            async def has_all() -> bool:
                async with field.session.post(
                    f"{field.node.base}/readings", json={"sensor": "w1", "temperature": 15 + 10 * len(events)}
                ):
                    events[:] = await field.events("virtual:warmth")
                return len(events) >= 3 and any(event["value"] is not None for event in events)

            events: list[dict[str, Any]] = []
            await eventually(has_all)
        for name in (
            "elsewhere",
            "warmth",
        ):  # what others publish there is a result if it has the form of one
            odd = {"sensor": name, "time": at(-5), "value": True, "text": "by hand", "more": 1}
            url = f"{field.node.base}/topics/virtual:warmth/events"
            async with field.session.post(url, json=odd) as response:
                assert response.status == 202

        async def is_idle() -> bool:
            async with field.session.get(f"{field.node.base}/virtual/warmth") as response:
                return bool((await response.json())["state"] == "idle")

        await eventually(is_idle)
        published = [event for event in await field.events("virtual:warmth") if "more" not in event]
        by_hand = {"sensor": "warmth", "time": at(-5), "value": None, "text": "by hand"}
        expected = sorted([*published, by_hand], key=lambda event: event["time"])
        assert await field.items(virtual="warmth") == expected
        assert {item["sensor"] for item in await field.items()} == {"w1"}
        restart(field)
        assert await field.items(virtual="warmth") == expected
        assert await field.items(virtual="other") == []
        assert await field.items(virtual="warmth", filter="exists(count)") == published
        assert {item["sensor"] for item in await field.items(kind="weather")} == {"w1"}
        _, body, _ = await field.get("text/csv", virtual="warmth")
        assert body.startswith(b"sensor,time,")
        assert (await field.get(virtual="warmth", format="png"))[1].startswith(PNG)


async def test_a_killed_node_has_every_accepted_reading_once(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        sent = 0
        for kills in range(1, 4):
            for _ in range(5):
                await field.send(*(reading(sent + n, f"w{n % 3 + 1}") for n in range(20)))
                sent += 20
            if kills == 2:  # once with some in files and some not
                until(lambda: files_of(field))
                await field.send(*(reading(sent + n) for n in range(20)))
                sent += 20
            field.node.kill()
            field.node.start()
            assert [item["time"] for item in await field.items()] == [at(n) for n in range(sent)]
        restart(field)
        assert [item["time"] for item in await field.items()] == [at(n) for n in range(sent)]
        assert sum(pq.ParquetFile(file).metadata.num_rows for file in files_of(field)) == sent


async def test_pictures_come_by_accept_by_format_and_by_command(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(*(reading(n, sensor) for n in range(30) for sensor in ("w1", "w2")))
        for accept, begin in (("image/png", PNG), ("image/svg+xml", SVG)):
            status, body, headers = await field.get(accept, kind="weather")
            assert (status, headers["Content-Type"], body[: len(begin)]) == (200, accept, begin)
        _, svg, _ = await field.get(format="svg", sensor="w1", quantity="temperature")
        for text in (b"w1</text>", b"temperature (degC)", b"time (UTC)"):
            assert text in svg
        assert b"wind" not in svg
        assert b"no readings" in (await field.get(format="svg", sensor="nothing"))[1]
        out = tmp_path / "plot.png"
        for command in (
            ("plot", "--sensor", "w1", "--quantity", "temperature"),
            ("plot", "--kind", "weather", "--from", at(0), "--filter", "temperature > 5"),
            ("history", "--sensor", "w2"),
        ):
            run = await asyncio.to_thread(
                hpwsn, "sensors", *command, "--url", field.node.url, "--out", str(out)
            )
            assert (run.returncode, run.stdout) == (0, f"wrote {out}\n"), run.stderr
            assert out.read_bytes().startswith(PNG)
            out.unlink()


async def test_the_command_prints_a_table_csv_and_json_of_more_than_one_page(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(*(reading(n) for n in range(1200)))

        async def history(*options: str) -> str:
            told = ("sensors", "history", "--sensor", "w1", "--url", field.node.url, *options)
            run = await asyncio.to_thread(hpwsn, *told)
            assert run.returncode == 0, run.stderr
            return run.stdout

        table = (await history()).splitlines()
        assert (len(table), table[0].split()[:3]) == (1201, ["SENSOR", "KIND", "TIME"])
        assert len(json.loads(await history("--json"))["items"]) == 1200
        lines = (await history("--csv", "--limit", "700")).splitlines()
        assert (len(lines), lines[0]) == (701, "sensor,kind,time,longitude,latitude,temperature")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"colour": "red"}, "parameter 'colour' is unknown"),
        ({"from": "yesterday"}, "from is 'yesterday'; give a time such as 2026-01-31T12:00:00Z"),
        ({"to": "2026-01-31T12:00:00"}, "to is '2026-01-31T12:00:00'; give a time such as"),
        ({"from": "2026-02-30T12:00:00Z"}, "from is"),
        ({"limit": "0"}, "limit is '0'; give a number of items, from 1 to 1000"),
        ({"limit": "x"}, "limit is 'x'"),
        ({"after": "12"}, "after is '12'; give the value of next"),
        ({"area": "1,2,3"}, "area is '1,2,3'; give west,south,east,north"),
        ({"area": "1,2,3,nan"}, "area is '1,2,3,nan'"),
        ({"filter": "temperature >"}, "'temperature >' is not a valid predicate filter"),
        ({"filter": "x", "dialect": "sql"}, "dialect is 'sql'; give predicates or xpath"),
        ({"format": "gif"}, "format is 'gif'; give json, csv, png, svg"),
        ({"virtual": "v", "kind": "weather"}, "virtual is given with kind"),
        ({"quantity": "temperature"}, "parameter 'quantity' is unknown"),
        ({"format": "png", "limit": "3"}, "parameter 'limit' is unknown"),
    ],
)
async def test_what_cannot_be_asked_is_said(
    query: dict[str, str], said: str, shared_node: NodeProcess
) -> None:
    async with field_of(shared_node) as field:
        status, body, _ = await field.get(**query)
        assert status == 400, body
        assert said in json.loads(body)["error"]


async def test_a_sensor_is_given_a_hundred_times_at_most(shared_node: NodeProcess) -> None:
    async with field_of(shared_node) as field:
        names = [f"s{n}" for n in range(101)]
        assert (await field.get(sensor=names[:100]))[0] == 200
        status, body, _ = await field.get(sensor=names)
        assert (status, "give at most 100" in json.loads(body)["error"]) == (400, True)


async def test_a_node_that_keeps_no_readings_says_so(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("[sensors]\nhistory = false\n")
    async with field_at(tmp_path, "--config", str(tmp_path / "node.toml")) as field:
        await field.send(reading(0))
        for accept in ("application/json", "image/png"):
            status, body, _ = await field.get(accept)
            assert status == 501
            told = "readings are not kept: set sensors.history = true"
            assert json.loads(body) == {"error": told}
        run = await asyncio.to_thread(hpwsn, "sensors", "history", "--url", field.node.url)
        assert (run.returncode, told in run.stderr) == (1, True)
        assert not (field.node.data / "readings").exists()


@pytest.mark.parametrize("missing", ["pyarrow", "matplotlib"])
async def test_a_node_without_a_library_says_what_to_install(missing: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules['{missing}'] = None\n")
    without = ("env", f"PYTHONPATH={tmp_path}:{environment()['PYTHONPATH']}")
    with NodeProcess(tmp_path / "data", prefix=without) as node:
        async with field_of(node) as field:
            await field.register()
            await field.send(reading(0))
            status, body, _ = await field.get(format="png")
            told = json.loads(body)["error"]
            assert (status, missing in told, "pip install 'hpwsn[sensors]'" in told) == (501, True, True)
            assert (await field.get())[0] == (501 if missing == "pyarrow" else 200)


async def test_a_damaged_file_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    async with field_at(tmp_path) as field:
        await field.send(reading(0))
        restart(field)
        (file,) = files_of(field)
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        status, body, _ = await field.get()
        assert (status, "the node's log names it" in json.loads(body)["error"]) == (500, True)
        assert f"{file} cannot be read" in field.node.log()
        async with field.session.get(f"{field.node.base}/status") as response:
            told = await response.text()
        assert "1 file of kept readings cannot be read" in told
        await field.send(reading(1, "w3"))
        assert await field.names(kind="sea") == [("w3", 1.0)]
        file.write_bytes(whole)
        assert await field.names() == [("w1", 0.0), ("w3", 1.0)]
