"""The limits in the OpenAPI document are the constants of the code."""

import re
from importlib.resources import files
from typing import Any

import pytest

from hpwsn.door.rest.events import event_pages, event_parameters, events_door
from hpwsn.door.rest.openapi import PARTS, document
from hpwsn.door.rest.operations import dead_letters
from hpwsn.door.rest.sensors import history_door
from hpwsn.door.rest.services import service_requests
from hpwsn.http_json import list_pages
from hpwsn.sensors.physical import physical_sensor, units
from hpwsn.sensors.readings import checks
from hpwsn.sensors.templates import bands, combining, result_text, template
from hpwsn.streams.agent import job_folder, job_rules, posted_definition
from hpwsn.streams.registry import service
from hpwsn_client import __version__
from hpwsn_client.wsn.topics import topic

DOCUMENT = document("http://127.0.0.1:9000")
SCHEMAS = DOCUMENT["components"]["schemas"]


def parameter(path: str, method: str, name: str) -> dict[str, Any]:
    """The description of one parameter of an operation."""
    operation = DOCUMENT["paths"][path][method]
    found: dict[str, Any] = next(each for each in operation["parameters"] if each["name"] == name)
    return found


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def strings(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas of the texts of a service that have a greatest length."""
    texts = [schema["properties"][name] for name in ("topic", "instance", "description")]
    maps = [schema["properties"][name] for name in ("attributes", "constraints", "inputs")]
    return texts + [each["additionalProperties"] for each in maps]


def test_the_version_and_the_address_are_those_of_the_node() -> None:
    assert DOCUMENT["info"]["version"] == __version__
    assert DOCUMENT["servers"] == [{"url": "http://127.0.0.1:9000"}]


def test_documents_for_two_addresses_are_independent() -> None:
    assert document("http://a")["servers"] != document("http://b")["servers"]


def test_every_part_of_the_document_is_in_the_package() -> None:
    folder = files("hpwsn.door.rest.openapi_parts")
    assert all(folder.joinpath(f"{part}.json").is_file() for part in ("document", *PARTS))


def test_a_page_of_events_has_the_default_and_the_limit_of_the_code() -> None:
    maximum = parameter("/topics/{topic}/events", "get", "max")
    assert maximum["schema"]["default"] == events_door.PAGE
    assert numbers(maximum["description"]) == [
        events_door.LARGEST_PAGE,
        event_pages.ROWS,
        event_pages.MOST_ROWS,
    ]


def test_the_longest_wait_of_a_poll_is_that_of_the_code() -> None:
    assert numbers(parameter("/topics/{topic}/events", "get", "wait")["description"]) == [
        event_parameters.LONGEST_WAIT
    ]


@pytest.mark.parametrize("name", ["id", "Hpwsn-Message-Id"])
def test_a_message_id_has_the_length_that_the_code_accepts(name: str) -> None:
    longest = parameter("/topics/{topic}/events", "post", name)["schema"]["maxLength"]
    assert event_parameters._is_id("x" * longest)
    assert not event_parameters._is_id("x" * (longest + 1))


def test_a_topic_has_the_limits_of_the_code() -> None:
    described = DOCUMENT["paths"]["/topics/{topic}/events"]["parameters"][0]["description"]
    assert numbers(described) == [topic.MAX_STEPS, topic.MAX_CHARACTERS]


@pytest.mark.parametrize(
    "path",
    [
        "/deadletters",
        "/deadletters/groups",
        "/pullpoints",
        "/readings",
        "/readings/rejected",
        "/registrations",
        "/sensors",
        "/streams",
        "/virtual",
    ],
)
def test_a_page_of_a_list_has_the_limit_of_the_code(path: str) -> None:
    limit = parameter(path, "get", "limit")
    assert limit["schema"]["default"] == list_pages.PAGE
    assert numbers(limit["description"]) == [list_pages.LARGEST_PAGE]


def test_a_replay_waits_as_long_as_the_code_allows() -> None:
    wait = parameter("/deadletters/replay", "post", "wait")
    assert numbers(wait["description"]) == [wait["schema"]["maximum"]] == [dead_letters.LONGEST_WAIT]


@pytest.mark.parametrize("name", ["StreamRegistration", "Stream"])
def test_the_texts_of_a_service_have_the_limit_of_the_code(name: str) -> None:
    assert {each["maxLength"] for each in strings(SCHEMAS[name])} == {service.MAX_TEXT}


def test_the_states_of_a_service_are_those_of_the_code() -> None:
    assert SCHEMAS["StreamRegistration"]["properties"]["state"]["enum"] == list(service.STATES)
    for name in ("Stream", "StreamDetails"):
        assert set(SCHEMAS[name]["properties"]["state"]["enum"]) == {*service.STATES, *job_rules.JobState}


def test_the_page_of_a_service_and_a_definition_have_the_limits_of_the_code() -> None:
    body = DOCUMENT["paths"]["/streams"]["post"]["requestBody"]
    assert numbers(body["description"]) == [posted_definition.MAX_DEFINITION]
    details = SCHEMAS["StreamDetails"]["properties"]
    assert details["log"]["maxItems"] == job_folder.SHOWN_LINES
    assert details["requests"]["properties"]["items"]["maxItems"] == service_requests.MAX_LISTED


def test_a_sensor_has_the_limits_of_the_code() -> None:
    sensor, quantity = SCHEMAS["Sensor"]["properties"], SCHEMAS["Quantity"]["properties"]
    texts = [*(sensor[name] for name in ("id", "kind", "owner", "gateway")), sensor["tags"]["items"]]
    assert {each["maxLength"] for each in texts} == {physical_sensor.LONGEST_NAME}
    assert sensor["tags"]["maxItems"] == physical_sensor.MOST_TAGS
    assert sensor["quantities"]["maxProperties"] == physical_sensor.MOST_QUANTITIES
    names = sensor["quantities"]["propertyNames"]
    assert (set(names["not"]["enum"]), names["maxLength"]) == (
        physical_sensor.RESERVED,
        physical_sensor.LONGEST_NAME,
    )
    assert quantity["unit"]["maxLength"] == units.LONGEST_UNIT


def test_kept_readings_have_the_limits_of_the_code() -> None:
    assert SCHEMAS["Readings"]["properties"]["items"]["maxItems"] == list_pages.LARGEST_PAGE
    for name in ("sensor", "virtual"):
        assert parameter("/readings", "get", name)["schema"]["maxItems"] == history_door.MOST_SENSORS
    assert parameter("/readings", "get", "format")["schema"]["enum"] == list(history_door.FORMS)
    answer = DOCUMENT["paths"]["/readings"]["get"]["responses"]["200"]
    assert list(answer["content"]) == list(history_door.FORMS.values())


def test_a_virtual_sensor_has_the_limits_of_the_code() -> None:
    given, known = (SCHEMAS[name]["properties"] for name in ("VirtualSensor", "KnownVirtualSensor"))
    assert set(given) == {*template.FIELDS, "name"}
    assert set(known) == {*given, "topic", "state", "members", "late", "refused"}
    for name, choices in (("combine", combining.COMBINATIONS), ("silence", template.SILENCES)):
        assert given[name]["enum"] == [*choices, None]
        assert known[name]["enum"] == list(choices)
    every, lateness = given["every"]["anyOf"][0], given["lateness"]["anyOf"][0]["anyOf"][0]
    assert (every["minimum"], every["maximum"]) == (template.SHORTEST, template.LONGEST)
    assert (lateness["minimum"], lateness["maximum"]) == (0, template.LONGEST_LATENESS)
    assert given["quorum"]["maximum"] == template.LARGEST_QUORUM
    assert given["service"]["maxLength"] == template.LONGEST_SERVICE
    assert given["text"]["maxLength"] == result_text.LONGEST_TEXT
    assert given["bands"]["anyOf"][0]["maxItems"] == bands.MOST_BANDS
    tags = given["tags"]["anyOf"][0]["anyOf"][0]
    assert tags["maxItems"] == physical_sensor.MOST_TAGS
    names = (given["kind"], given["quantity"], tags["items"], SCHEMAS["Band"]["properties"]["name"])
    assert {each["maxLength"] for each in names} == {physical_sensor.LONGEST_NAME}


def test_a_reading_is_rejected_for_the_reasons_of_the_code() -> None:
    assert tuple(SCHEMAS["Rejection"]["enum"]) == checks.REASONS


def test_every_reference_leads_to_a_schema() -> None:
    assert {name.rpartition("/")[2] for name in _references(DOCUMENT)} <= set(SCHEMAS)


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()
