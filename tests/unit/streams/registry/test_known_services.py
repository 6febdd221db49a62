"""Stream services that a node knows: who may register one, when it is silent, what may be asked of it."""

import pytest

from hpwsn.streams.registry.known_services import AlreadyRunning, Services
from hpwsn.streams.registry.service import ServiceRefused, parse_service
from hpwsn.streams.registry.service_file import ServiceStore
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.soap.faults import InvalidFilterFault
from hpwsn_client.wsn.soap.names import DIALECT_FULL, DIALECT_PREDICATES, DIALECT_SIMPLE, DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import parse_topic_expression

FLOW = {"topic": "traffic:flow", "instance": "one", "constraints": {"flow": "> 0", "time": "> 2010-01-01"}}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def services(clock):
    return Services(clock, limit=2, silent_after=15, forget_after=100)


def wanted(topic, expression, dialect=DIALECT_PREDICATES, topics=DIALECT_SIMPLE):
    return Filter((parse_topic_expression(topic, topics, {}),), (ContentFilter(dialect, expression, ()),))


def test_a_service_is_running_then_silent_then_forgotten(services, clock):
    assert services.register("urn:flow", FLOW | {"figures": {"rate": 5}})
    assert [(s["uri"], s["state"], s["figures"]) for s in services] == [("urn:flow", "running", {"rate": 5})]
    clock.now += 14.9
    assert not services.register("urn:flow", FLOW | {"figures": {"rate": 6}})
    clock.now += 15
    assert services.describe("urn:flow")["state"] == "silent"
    clock.now += 85
    assert services.describe("urn:flow") is None


def test_a_second_run_waits_until_the_first_is_stopped_or_silent(services, clock):
    services.register("urn:flow", FLOW)
    other = FLOW | {"instance": "two"}
    with pytest.raises(AlreadyRunning, match="another checkpoint"):
        services.register("urn:flow", other)
    services.register("urn:flow", FLOW | {"state": "stopped"})
    services.register("urn:flow", other)
    with pytest.raises(AlreadyRunning):
        services.register("urn:flow", FLOW)
    clock.now += 15
    services.register("urn:flow", FLOW)
    assert services.describe("urn:flow")["since"] == "1970-01-01T00:16:55.000+00:00"


def test_the_limit_of_services_is_held_and_a_known_one_may_still_change(services):
    services.register("a", FLOW)
    services.register("b", FLOW)
    with pytest.raises(ServiceRefused, match="limit of 2"):
        services.register("c", FLOW)
    assert services.register("a", FLOW | {"description": "new"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"topic": ""}, "topic is missing"),
        ({"topic": "a b"}, "write names joined"),
        ({"instance": 5}, "instance must be a text"),
        ({"state": "lost"}, "running or stopped"),
        ({"constraints": {"flow": "> "}}, "constraint flow"),
        ({"constraints": {"flow": "speed > 3"}}, "is about speed"),
        ({"constraints": ["flow"]}, "constraints must be an object"),
        ({"inputs": {"a": 1}}, "inputs"),
        ({"figures": {"rate": "fast"}}, "figure"),
        ({"figures": {"rate": True}}, "figure"),
        ({"wrong": 1}, "unknown field"),
        ({"description": "x" * 4097}, "4096"),
        ({"description": "\ud800"}, "description must be a text"),
        ({"attributes": {"\udfff": "int"}}, "attributes: "),
        ({"plan": {}}, "plan must be a list"),
        ({"plan": [{"op": "a", "inputs": ["\ud800"]}]}, "entry 0: the input"),
        ({"plan": [{"op": "a"}] * 1001}, "at most 1000 operators"),
        ({"plan": ["filter"]}, "entry 0 must be an object"),
        ({"plan": [{"op": "a"}, {"op": "b", "more": 1}]}, "entry 1 must be an object with op"),
        ({"plan": [{"text": "x"}]}, "entry 0: op is missing"),
        ({"plan": [{"op": "a", "text": "x" * 4097}]}, "entry 0: text must be a text of at most 4096"),
        ({"plan": [{"op": "a", "inputs": "b"}]}, "inputs must be a list"),
        ({"plan": [{"op": "a", "inputs": ["b"] * 1001}]}, "at most 1000 inputs"),
        ({"plan": [{"op": "a", "inputs": ["x" * 4097]}]}, "a name of at most 4096"),
        ({"plan": [{"op": "a", "inputs": [0]}]}, "position of an earlier entry"),
        ({"plan": [{"op": "a"}, {"op": "b", "inputs": [-1]}]}, "position of an earlier entry"),
        ({"plan": [{"op": "a"}, {"op": "b", "inputs": [False]}]}, "position of an earlier entry"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name_and_changes_nothing(services, change, words):
    with pytest.raises(ServiceRefused, match=words):
        services.register("urn:flow", FLOW | change)
    assert len(services) == 0


def test_what_is_saved_is_known_after_a_restart_and_silent_until_it_is_heard(services, clock, tmp_path):
    store = ServiceStore(tmp_path / "streams.json")
    services.register("urn:flow", FLOW | {"description": "Flow", "attributes": {"flow": "bigint"}})
    store.save(services.saved())
    again = Services(clock, limit=2, silent_after=15, forget_after=0)
    again.restore(store.load())
    assert again.describe("urn:flow")["state"] == "silent"
    assert parse_service(*again.saved()[0]) == parse_service(*services.saved()[0])
    with pytest.raises(InvalidFilterFault, match="flow < 0"):
        again.check(wanted("traffic:flow", "flow < 0"))


def test_a_plan_at_its_limits_is_kept_over_a_restart_and_not_in_the_list(services, clock, tmp_path):
    entry = {"op": "x" * 4096, "inputs": [], "text": "y" * 4096}
    plan = [entry, {"op": "b", "inputs": [0, "z" * 4096] * 500, "text": ""}, *[{"op": "c"}] * 998]
    assert services.register("urn:flow", FLOW)
    assert services.plan("urn:flow") is None
    assert services.register("urn:flow", FLOW | {"plan": plan})
    assert not services.register("urn:flow", FLOW | {"plan": plan})
    store = ServiceStore(tmp_path / "streams.json")
    store.save(services.saved())
    again = Services(clock, limit=2, silent_after=15, forget_after=0)
    again.restore(store.load())
    assert again.plan("urn:flow") == [*plan[:2], *[{"op": "c", "inputs": [], "text": ""}] * 998]
    assert "plan" not in again.describe("urn:flow")
    assert again.plan("urn:other") is None


def test_a_damaged_file_is_set_aside(tmp_path):
    store = ServiceStore(tmp_path / "streams.json")
    assert store.load() == []
    for text in ("{", "[]", '{"version": 9, "services": {}}', '{"version": 1, "services": [1]}'):
        store.path.write_text(text)
        assert store.load() == []
        assert not store.path.exists()


@pytest.mark.parametrize(
    ("topic", "expression", "dialect", "topics"),
    [
        ("traffic:flow", "flow < 0", DIALECT_PREDICATES, DIALECT_SIMPLE),
        ("traffic:flow:north", "flow > 3 and time < 2001-01-01", DIALECT_PREDICATES, DIALECT_SIMPLE),
        ("traffic/flow", "flow <= 0 or flow > 5", DIALECT_PREDICATES, DIALECT_FULL),
        ("traffic/flow", "flow < 0", DIALECT_XPATH, DIALECT_FULL),
        ("traffic/flow|traffic/flow/north", "//flow < 0", DIALECT_XPATH, DIALECT_FULL),
    ],
)
def test_a_request_outside_the_constraints_of_its_topic_is_refused(
    services, topic, expression, dialect, topics
):
    services.register("urn:flow", FLOW)
    with pytest.raises(InvalidFilterFault, match="lies outside the constraint"):
        services.check(wanted(topic, expression, dialect, topics))


@pytest.mark.parametrize(
    ("topic", "expression", "dialect", "topics"),
    [
        ("traffic:flow", "flow > 5", DIALECT_PREDICATES, DIALECT_SIMPLE),
        ("traffic:flow", "speed < 0", DIALECT_PREDICATES, DIALECT_SIMPLE),
        ("traffic", "flow < 0", DIALECT_PREDICATES, DIALECT_SIMPLE),
        ("traffic:other", "flow < 0", DIALECT_PREDICATES, DIALECT_SIMPLE),
        ("traffic//*", "flow < 0", DIALECT_PREDICATES, DIALECT_FULL),
        ("traffic/flow|weather", "flow < 0", DIALECT_PREDICATES, DIALECT_FULL),
        ("traffic/flow", "flow = '0'", DIALECT_XPATH, DIALECT_FULL),
        ("traffic/flow", "count(flow) < 0", DIALECT_XPATH, DIALECT_FULL),
    ],
)
def test_a_request_that_something_could_satisfy_is_not(services, topic, expression, dialect, topics):
    services.register("urn:flow", FLOW)
    services.check(wanted(topic, expression, dialect, topics))


def test_two_services_on_one_topic_refuse_only_what_neither_has(services):
    services.register("a", FLOW)
    services.register("b", FLOW | {"constraints": {"flow": "< 0"}})
    services.check(wanted("traffic:flow", "flow < -5"))
    services.check(wanted("traffic:flow", "flow > 5"))
    with pytest.raises(InvalidFilterFault):
        services.check(wanted("traffic:flow", "flow = 0"))
    services.remove("b")
    with pytest.raises(InvalidFilterFault):
        services.check(wanted("traffic:flow", "flow < -5"))
