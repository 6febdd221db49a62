"""schemathesis, unchanged, tries every operation of /openapi.json on a real node, with all default checks.

What a document cannot say is said here: what a topic, an XPath, XML, NDJSON, TOML, Arrow, a unit and a time
are, and that of two names for one id only one may be given. Nobody waits for an event that never comes, and
every run tries the same requests.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import jsonschema_rs
import pyarrow as pa
import schemathesis
from hypothesis import strategies as st
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

from hpwsn.door.protobuf.event_messages import encode_messages
from hpwsn.door.rest.openapi import document
from hpwsn.http_json.list_pages import cursor_of
from tests.harness import NodeProcess

GIVEN = {
    "path.topic": "sensors:hall",
    "query.filter": "n > 1 or n < 1",
    "query.also": ["sensors:roof"],
    "query.wait": 0.01,
    "query.seconds": 0.01,
    "path.uri": "urn:flow",
    "query.topic": "sensors:hall",
    "query.under": "sensors",
    "query.area": "-10,-10,10,10",
    "path.name": "hall",
    "query.from": "2026-01-31T12:00:00Z",
    "query.to": "2026-02-01T12:00:00+01:00",
}
SENSOR = jsonschema_rs.validator_for(
    {"$ref": "#/components/schemas/Sensor", "components": document("")["components"]}, validate_formats=False
)
VIRTUAL = jsonschema_rs.validator_for(
    {"$ref": "#/components/schemas/VirtualSensor", "components": document("")["components"]},
    validate_formats=False,
)
READABLE = {
    "callback": "http://127.0.0.1:9/",
    "consumer": "http://127.0.0.1:9/",
    "topic": "sensors:hall",
    "filter": "n > 1",
    "expires": "PT1H",
    "beta": "PT1M",
}
DEFINABLE = {
    "name": "hall",
    "kind": "weather",
    "tags": ["roof"],
    "area": [-10, -10, 10, 10],
    "quantity": "t",
    "every": "10 s",
    "lateness": "1 s",
    "text": "{name}: {value:.1f} {unit}",
}
LONGEST_ADDRESS = 8192
CURSOR = re.compile(r"[A-Za-z0-9_-]*")
TOPICS_CURSOR = cursor_of("sensors:hall")
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,9}", fullmatch=True)
LINES = st.lists(st.dictionaries(NAMES, st.integers() | st.booleans() | NAMES), min_size=1, max_size=5)
CHANGES = jsonschema_rs.validator_for(
    document("")["components"]["schemas"]["TopicChange"], validate_formats=False
)
VALUES = {"description", "routing", "visibility"}
CHANGE_FIELDS = {
    "add": VALUES,
    "set": {*VALUES, "etag"},
    "move": {"to", "etag", "below"},
    "remove": {"etag", "below"},
}
GENERATION = GenerationConfig(deterministic=True, max_examples=25, database="none")
PROJECT = ProjectConfig(generation=GENERATION, parameters=GIVEN)


def stream_of(numbers: list[int]) -> bytes:
    """An Arrow stream with a column of numbers."""
    sink = io.BytesIO()
    batch = pa.record_batch({"n": pa.array(numbers)})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


schemathesis.openapi.media_type(
    "application/x-ndjson", LINES.map(lambda events: "\n".join(map(json.dumps, events)).encode())
)
schemathesis.openapi.media_type(
    "application/vnd.apache.arrow.stream", st.lists(st.integers(0, 9), min_size=1).map(stream_of)
)
for kind in ("application/xml", "text/xml"):
    schemathesis.openapi.media_type(kind, NAMES.map(lambda name: f"<{name}>1</{name}>".encode()))
schemathesis.openapi.media_type("text/csv", st.just(b"sensor,t\ngauge,1\n"))
schemathesis.openapi.media_type("application/toml", st.just(b'uri = "urn:flow"\n'))
schemathesis.openapi.media_type(
    "application/x-protobuf",
    LINES.map(lambda events: encode_messages([json.dumps(event).encode() for event in events])),
)
schema = schemathesis.openapi.from_dict(
    document("http://127.0.0.1"),
    config=SchemathesisConfig(projects=ProjectsConfig(default=PROJECT), seed=1),
)


@schema.parametrize()
def test_every_operation_does_what_the_document_says(
    case: schemathesis.Case, shared_node: NodeProcess
) -> None:
    if "id" in (case.query or {}):
        case.headers.pop("Hpwsn-Message-Id", None)
    if str((case.query or {}).get("max_rate", "")).strip("0").isdecimal():
        del case.query["max_rate"]  # only streams have it, and these requests are polls
    if case.operation.path == "/streams/{uri}" and isinstance(case.body, dict):
        _make_readable(case.body)
    if case.operation.path.startswith(("/subscriptions", "/presence")):
        _make_subscribable(case.body, case.query)
    if case.operation.path == "/topics" and len(case.query or {}) > 1:
        case.query.pop("topic", None)  # named topics are on one page, in their order
    if case.operation.path == "/topics" and isinstance((case.query or {}).get("after"), str):
        case.query["after"] = TOPICS_CURSOR
    if case.operation.path == "/deadletters/groups" and isinstance((case.query or {}).get("after"), str):
        del case.query["after"]  # it holds only for the sort of its page
    if case.operation.path == "/filters/check" and isinstance(case.body, dict):
        _make_checkable(case.body)
    if case.operation.path == "/topics/changes" and isinstance(case.body, dict):
        _make_possible(case.body)
    if case.operation.path == "/topics/import" and isinstance(case.body, dict):
        _make_importable(case.body)
    if case.operation.path == "/sensors":
        _make_measurable(case.body)
    if case.operation.path == "/readings" and case.method == "GET":
        _make_drawable(case.query or {})
    if case.operation.path in ("/readings", "/sensors/{id}/readings") and case.method == "POST":
        _make_acceptable(case, shared_node)
    if case.operation.path == "/virtual/{name}":
        _make_definable(case.body)
    response = case.call_and_validate(base_url=shared_node.base)
    if response.status_code == 201 and case.operation.path == "/subscriptions":
        urlopen(Request(response.json()["url"], method="DELETE")).close()


def _make_measurable(asked: object) -> None:
    """Put names, units and ranges into valid sensors, of which the document has no grammar."""
    for sensor in asked if isinstance(asked, list) else [asked]:
        if isinstance(sensor, dict) and SENSOR.is_valid(sensor):
            sensor |= {"id": "s1", "kind": "weather"}
            sensor |= {name: "text" for name in ("owner", "gateway") if name in sensor}
            sensor |= {"tags": ["roof"]} if "tags" in sensor else {}
            sensor["quantities"] = {
                f"q{number}": {"unit": "degC", **{end: 0 for end in ("min", "max") if end in quantity}}
                for number, quantity in enumerate(sensor["quantities"].values())
            }


def _make_acceptable(case: schemathesis.Case, node: NodeProcess) -> None:
    """Make one of valid readings that of a registered sensor; the document knows no sensors."""
    assert case.meta is not None
    if any(component.mode.is_negative for component in case.meta.components.values()):
        return
    sensor = {"id": "gauge", "kind": "weather", "quantities": {"t": {"unit": "degC"}}}
    headers = {"Content-Type": "application/json"}
    urlopen(Request(f"{node.base}/sensors", json.dumps(sensor).encode(), headers)).close()
    reading: dict[str, object] = {"sensor": "gauge", "t": 1}
    if case.media_type == "application/x-ndjson":
        case.body = json.dumps(reading)
    elif isinstance(case.body, list):
        case.body[0] = reading
    elif isinstance(case.body, dict):
        case.body = reading
    if "{id}" in case.operation.path:
        case.path_parameters["id"] = "gauge"


def _make_drawable(query: dict[str, Any]) -> None:
    """Leave out what does not fit the other parameters of kept readings."""
    if any(query.get("virtual") or ()):
        for name in ("sensor", "kind", "area"):
            query.pop(name, None)
    for name in ("limit", "after") if query.get("format") in ("png", "svg") else ("quantity",):
        query.pop(name, None)


def _make_definable(asked: object) -> None:
    """Put names, times, an area and a text where they belong, and bounds into bands; no service runs."""
    if not isinstance(asked, dict) or not VIRTUAL.is_valid(asked):
        return
    for name, text in DEFINABLE.items():
        if asked.get(name) is not None:
            asked[name] = text
    asked.pop("service", None)
    for band in asked.get("bands") or ():
        band |= {"name": "band", "low": None, "high": 0}


def _make_possible(asked: dict[str, Any]) -> None:
    """Leave to each valid change the fields of its operation, and name topics."""
    changes = asked.get("changes")
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, dict) and CHANGES.is_valid(change):
            change |= {"topic": "edited:hall"}
            change |= {"to": "edited:moved"} if change["op"] == "move" else {}
            change |= {"description": "text"} if change.get("description") else {}
            for name in set(change) - CHANGE_FIELDS[change["op"]] - {"op", "topic"}:
                del change[name]


def _make_importable(asked: dict[str, Any]) -> None:
    """Put topics where the text of a file is."""
    if isinstance(asked.get("text"), str):
        ldif = "dn: cn=edited,ou=topics\nobjectClass: hpwsnTopic\ncn: edited\n"
        asked["text"] = ldif if asked.get("format") == "ldif" else "[topics.edited]\n"


def _make_checkable(asked: dict[str, Any]) -> None:
    """Put a filter of both dialects and a topic where texts are."""
    for name, text in (("filter", "n > 1"), ("topic", "sensors:hall")):
        if isinstance(asked.get(name), str):
            asked[name] = text


def _make_readable(service: dict[str, Any]) -> None:
    """Put a topic and a constraint where texts are, of which the document has no grammar."""
    if isinstance(service.get("topic"), str) and 0 < len(service["topic"]) <= 4096:
        service["topic"] = "sensors:hall"
    given = service.get("constraints")
    if isinstance(given, dict) and all(
        isinstance(text, str) and len(text) <= 4096 for text in given.values()
    ):
        service["constraints"] = {"n": "> 0"} if given else {}
    plan = service.get("plan")
    for entry in plan if isinstance(plan, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("inputs"), list):
            # The document cannot say that a position is that of an earlier entry.
            entry["inputs"] = ["sensors" if _is_position(each) else each for each in entry["inputs"]]


def _is_position(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value % 1 == 0


def _make_subscribable(asked: object, query: dict[str, Any] | None) -> None:
    """Put an address, a topic, a filter and times where texts are, and leave out a cursor of no page."""
    if CURSOR.fullmatch(str((query or {}).get("after", "-"))):
        (query or {}).pop("after", None)
    if isinstance(asked, dict):
        for given in (asked, asked.get("delivery")):
            _replace_texts(given)


def _replace_texts(given: object) -> None:
    if isinstance(given, dict):
        for name, text in READABLE.items():
            if isinstance(given.get(name), str) and 0 < len(given[name]) <= LONGEST_ADDRESS:
                given[name] = text


async def served(node: NodeProcess) -> Any:
    """The document as the node gives it."""
    async with aiohttp.ClientSession() as session, session.get(f"{node.base}/openapi.json") as response:
        return await response.json()


async def test_the_document_that_was_tried_is_the_one_that_is_served(shared_node: NodeProcess) -> None:
    found = await served(shared_node)
    assert found == document(shared_node.base)
    assert len(schema) == sum(method != "parameters" for path in found["paths"].values() for method in path)


async def test_an_event_of_a_stream_is_as_the_document_says(shared_node: NodeProcess) -> None:
    schemas = (await served(shared_node))["components"]["schemas"]
    url = f"{shared_node.base}/topics/streamed/events"
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json={"n": 1}) as answer:
            jsonschema_rs.validate(schemas["Span"], await answer.json())
        accept = {"Accept": "text/event-stream"}
        async with session.get(url, headers=accept, params={"after": "0"}) as response:
            assert response.content_type == "text/event-stream"
            await response.content.readuntil(b"data: ")
            event = json.loads(await response.content.readline())
    jsonschema_rs.validate(schemas["Event"], event)
    assert event["data"] == {"n": 1}
