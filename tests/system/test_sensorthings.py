"""The door of OGC SensorThings: a client that follows its links finds every sensor, quantity and value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.harness import NodeProcess
from tests.patience import PATIENCE

BEGIN = (datetime.now(UTC) - timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
SENSORS = [
    {
        "id": f"w{n}",
        "kind": "weather" if n < 3 else "sea",
        "quantities": {"t": {"unit": "degC"}, "wind": {"unit": "m/s"}},
        "tags": ["roof"],
        "owner": "us",
        **({"place": {"longitude": 10.0 + n, "latitude": 50.0}} if n < 4 else {}),
    }
    for n in range(1, 5)
]


def at(minutes: float) -> str:
    return (BEGIN + timedelta(minutes=minutes)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def send(node: NodeProcess, path: str, body: object) -> None:
    with urlopen(Request(f"{node.base}/{path}", json.dumps(body).encode()), timeout=PATIENCE) as response:
        assert response.status in (201, 202)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with an hour of readings in files, and some minutes in memory."""
    with NodeProcess(tmp_path_factory.mktemp("node") / "data") as node:
        send(node, "sensors", SENSORS)
        readings = [
            {"sensor": "w1", "time": at(n), "t": float(n), **({"wind": 1.5} if n % 3 == 0 else {})}
            for n in range(65)
        ]
        send(node, "readings", [*readings[:60], {"sensor": "w2", "time": at(5), "wind": 7.0}])
        assert node.terminate() == 0
        node.start()
        send(node, "readings", readings[60:])
        yield node


def fetch(url: str) -> Any:
    with urlopen(url, timeout=PATIENCE) as response:
        assert response.headers["Content-Type"].startswith("application/json")
        return json.load(response)


def get(node: NodeProcess, path: str, **options: object) -> Any:
    asked = urlencode({f"${name}": value for name, value in options.items()})
    return fetch(f"{node.base}/sta/v1.1/{path}" + (f"?{asked}" if asked else ""))


def pages(node: NodeProcess, path: str, **options: object) -> list[dict[str, Any]]:
    page = get(node, path, **options)
    found = page["value"]
    while "@iot.nextLink" in page:
        page = fetch(page["@iot.nextLink"])
        found += page["value"]
    return found


def results(found: list[dict[str, Any]]) -> list[float]:
    return [each["result"] for each in found]


def test_a_client_walks_from_the_root_to_every_value(node: NodeProcess) -> None:
    kinds = {each["name"]: each["url"] for each in fetch(f"{node.base}/sta/v1.1")["value"]}
    assert fetch(f"{node.base}/sta/v1.1/") == fetch(f"{node.base}/sta/v1.1")
    assert set(kinds) == {"Things", "Datastreams"}
    things = fetch(kinds["Things"])["value"]
    assert [thing["name"] for thing in things] == ["w1", "w2", "w3", "w4"]
    assert fetch(things[0]["@iot.selfLink"]) == things[0]
    assert things[0]["properties"] == {"kind": "weather", "tags": ["roof"], "owner": "us"}
    streams = fetch(things[0]["Datastreams@iot.navigationLink"])["value"]
    assert [each["@iot.id"] for each in streams] == ["w1:t", "w1:wind"]
    assert streams[0]["unitOfMeasurement"]["symbol"] == "degC"
    assert streams[0]["observedArea"] == {"type": "Point", "coordinates": [11.0, 50.0]}
    assert fetch(streams[0]["@iot.selfLink"]) == streams[0]
    assert fetch(streams[0]["Thing@iot.navigationLink"]) == things[0]
    first, *_ = found = fetch(streams[0]["Observations@iot.navigationLink"])["value"]
    assert results(found) == [float(n) for n in range(65)]
    assert (first["phenomenonTime"], first["resultTime"]) == (at(0), at(0))
    assert fetch(first["@iot.selfLink"]) == first
    assert fetch(first["Datastream@iot.navigationLink"]) == streams[0]
    assert len(fetch(kinds["Datastreams"])["value"]) == 8
    assert "observedArea" not in get(node, "Datastreams('w4:t')")


@pytest.mark.parametrize("top", [1, 7, 64, 65, 1000])
def test_pages_have_every_value_once_in_both_orders(node: NodeProcess, top: int) -> None:
    path = "Datastreams('w1:t')/Observations"
    assert results(pages(node, path, top=top)) == [float(n) for n in range(65)]
    latest = pages(node, path, top=top, orderby="phenomenonTime desc")
    assert results(latest) == [float(n) for n in reversed(range(65))]
    assert len(get(node, path, top=top)["value"]) == min(top, 65)


def test_the_latest_value_is_one_request(node: NodeProcess) -> None:
    path = "Datastreams('w1:wind')/Observations"
    (latest,) = get(node, path, top=1, orderby="phenomenonTime desc")["value"]
    assert (latest["phenomenonTime"], latest["result"]) == (at(63), 1.5)
    assert get(node, "Datastreams('w3:t')/Observations", orderby="resultTime desc") == {"value": []}


def test_values_are_filtered_by_time_and_result(node: NodeProcess) -> None:
    path = "Datastreams('w1:t')/Observations"
    text = f"phenomenonTime ge {at(10)} and phenomenonTime lt {at(62)} and (result le 11 or result gt 60)"
    assert results(pages(node, path, filter=text, top=2)) == [10.0, 11.0, 61.0]
    assert results(pages(node, path, filter=text, orderby="phenomenonTime desc")) == [61.0, 11.0, 10.0]
    assert len(pages(node, "Datastreams('w1:wind')/Observations", filter="result ne 1.5")) == 0


def test_things_are_filtered_sorted_counted_and_paged(node: NodeProcess) -> None:
    found = get(node, "Things", filter="properties/kind eq 'weather'", orderby="name desc", count="true")
    assert ([each["name"] for each in found["value"]], found["@iot.count"]) == (["w2", "w1"], 2)
    assert [each["name"] for each in pages(node, "Things", top=3)] == ["w1", "w2", "w3", "w4"]
    assert [each["name"] for each in get(node, "Things", skip=3)["value"]] == ["w4"]
    units = get(node, "Datastreams", filter="unitOfMeasurement/symbol eq 'm/s'", top=2)
    assert [each["name"] for each in units["value"]] == ["w1:wind", "w2:wind"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("Things('none')", 404, "there is no sensor 'none'"),
        ("Datastreams('w1:none')", 404, "the sensor 'w1' has no quantity 'none'"),
        ("Datastreams('w1')", 404, "has no quantity ''"),
        ("Observations('w1:t:1_1')", 404, "there is no Observation"),
        ("Observations('w1:t:x')", 404, "there is no Observation"),
        ("Locations", 404, "there is no 'Locations'"),
        ("Things('w1')/Locations", 404, "lists what there is"),
        ("Things(1)", 404, "lists what there is"),
        ("Things?$top=0", 400, "$top is '0'; give 1 to 1000"),
        ("Things?$top=-1", 400, "$top is '-1'"),
        ("Things?$skip=x", 400, "$skip is 'x'"),
        ("Things?$orderby=kind", 400, "$orderby is 'kind'; give name or id"),
        ("Things?$expand=Datastreams", 400, "parameter '$expand' is unknown; known parameters are $filter"),
        ("Things?$filter=name", 400, "$filter ends too early"),
        ("Datastreams('w1:t')/Observations?$skip=1", 400, "parameter '$skip' is unknown"),
        ("Datastreams('w1:t')/Observations?$skiptoken=x", 400, "follow @iot.nextLink"),
    ],
)
def test_what_is_not_there_is_said(node: NodeProcess, path: str, status: int, said: str) -> None:
    with pytest.raises(HTTPError) as error:
        fetch(f"{node.base}/sta/v1.1/{path}")
    with error.value as answer:
        assert answer.code == status
        assert said in json.load(answer)["error"]


def test_nothing_can_be_written(node: NodeProcess) -> None:
    with pytest.raises(HTTPError) as error:
        send(node, "sta/v1.1/Things", {"name": "new"})
    with error.value as answer:
        assert answer.code == 405


def test_a_node_without_history_has_things_and_no_values(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "sensors.history=false") as node:
        send(node, "sensors", SENSORS)
        assert len(get(node, "Things")["value"]) == 4
        with pytest.raises(HTTPError) as error:
            get(node, "Datastreams('w1:t')/Observations")
        with error.value as answer:
            assert (answer.code, "sensors.history = true" in json.load(answer)["error"]) == (501, True)
