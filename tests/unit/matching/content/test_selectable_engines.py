"""Every engine that can be chosen finds, in the broker's groups, exactly those whose filters hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.matching.content.content_group import INDEX_ABOVE, ContentGroup
from hpwsn.matching.papers.selectable import SELECTABLE
from hpwsn.node.content_engines import NEVER, BrokerEngines
from hpwsn.node.engine_choice import DEFAULT, EngineChoice
from hpwsn.settings.broker import ENGINES
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic, parse_topic_expression

NAMES = ["speed", "lane", "vid", "longitude", "latitude", "keywords", "time", "open"]
numbers = st.sampled_from(["0", "1", "2.5", "-1", "60", "116"])
texts = st.sampled_from(["京B34C91", "fire", "smoke", "fire, smoke", "2026-01-15", "left", ""])
names = st.sampled_from(NAMES)
operands = (
    numbers | texts.map(lambda text: f'"{text}"') | st.sampled_from(["true", "2026-01-15", "2026-02-01"])
)
predicates = st.one_of(
    st.builds("{} {} {}".format, names, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), operands),
    st.builds("{} between {} and {}".format, names, numbers, numbers),
    st.builds("{} not between {} and {}".format, names, numbers, numbers),
    st.builds("{} in ({}, {})".format, names, operands, operands),
    st.builds("{} not in ({}, {})".format, names, operands, operands),
    st.builds('{} like "{}"'.format, names, st.sampled_from(["京B%", "%ire", "_eft", "%"])),
    st.builds('{} not like "{}"'.format, names, st.sampled_from(["京B%", "%"])),
    st.builds(
        'has({}, "{}")'.format, st.sampled_from(["keywords", "vid"]), st.sampled_from(["fire", "smoke"])
    ),
    st.builds(
        "within(longitude, latitude, {}, {}, 117, 41)".format, *[st.sampled_from(["0", "115", "40"])] * 2
    ),
    st.builds(
        'within(longitude, latitude, {}, 39, 117, 41) and has(keywords, "{}")'.format,
        st.sampled_from(["100", "115", "116"]),
        st.sampled_from(["fire", "smoke"]),
    ),
    st.builds("exists({})".format, names),
    st.builds("not exists({})".format, names),
)
expressions = st.recursive(
    predicates,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=4,
)
xpaths = st.builds("/car/{} > {}".format, st.sampled_from(["speed", "lane"]), numbers)
filters_ = st.one_of(
    expressions.map(lambda text: ContentFilter(DIALECT_PREDICATES, text)),
    xpaths.map(lambda text: ContentFilter(DIALECT_XPATH, text)),
)
leaves = st.builds("<{0}>{1}</{0}>".format, names, numbers | texts | st.just("true"))
payloads = st.lists(leaves, max_size=9).map(lambda parts: f"<car>{''.join(parts)}</car>".encode())

ENOUGH_FOR_AN_INDEX = [
    ContentFilter(DIALECT_PREDICATES, f"speed > {n}") for n in range(1000, 1001 + INDEX_ABOVE)
]


def accepted(filters, wanted):
    """Acquire those filters that the broker accepts: it refuses one that can never match."""
    kept = []
    for each in wanted:
        try:
            filters.acquire((each,))
        except InvalidMessageContentExpressionFault:
            continue
        kept.append((each,))
    return kept


@pytest.mark.parametrize("name", ENGINES)
@given(
    wanted=st.lists(filters_, max_size=25),
    leaving=st.sets(st.integers(0, 24), max_size=20),
    several=st.lists(payloads, min_size=1, max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_each_engine_finds_those_whose_filters_hold(name, wanted, leaving, several):
    filters = ContentFilters()
    group = ContentGroup(choice(name).of_expressions(()))
    members = dict(enumerate(accepted(filters, [*wanted, *ENOUGH_FOR_AN_INDEX])))
    for number, each in members.items():
        group.add(number, filters.find(each))
    assert_found(group, filters, members, several)
    for number in leaving & members.keys():
        group.discard(number, filters.find(members.pop(number)))
    assert_found(group, filters, members, several)


def assert_found(group, filters, members, several):
    found = group.match([filters.evaluation(payload) for payload in several])
    for payload, each in zip(several, found, strict=True):
        holds = filters.evaluation(payload).holds
        assert sorted(each) == [number for number, wanted in sorted(members.items()) if holds(wanted)]


def choice(engine=DEFAULT, topics=()):
    return EngineChoice(engine, topics, BrokerEngines(NEVER))


def test_the_setting_names_the_default_and_every_engine_of_the_table():
    assert set(ENGINES) == {DEFAULT, *SELECTABLE}
    assert ENGINES[0] == DEFAULT


@pytest.mark.parametrize("name", SELECTABLE)
def test_an_engine_of_the_name_is_made_and_nothing_compiled_for_it(name):
    engines = choice(name).of_expressions(())
    assert type(engines.make()) is SELECTABLE[name]
    assert engines.make() is not engines.make()
    engines.prepare()


def expression(text, dialect="simple"):
    dialects = {
        "simple": "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple",
        "full": "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full",
    }
    return parse_topic_expression(text, dialects[dialect], {})


@pytest.mark.parametrize(
    ("topics", "engine"),
    [
        ([expression("traffic")], "cma"),
        ([expression("traffic:anpr")], "matching_tree"),
        ([expression("traffic:anpr:north")], "matching_tree"),
        ([expression("traffic:gps")], "cma"),
        ([expression("trafficking")], "naive"),
        ([expression("weather:wind")], "naive"),
        ([expression("traffic/anpr/*", "full")], "matching_tree"),
        ([expression("traffic//north", "full")], "cma"),
        ([expression("//north", "full")], "naive"),
        ([expression("traffic/gps|traffic/bus", "full")], "cma"),
        ([expression("traffic/gps|weather", "full")], "naive"),
        ([expression("traffic"), expression("traffic:anpr")], "naive"),
        ([], "naive"),
    ],
    ids=str,
)
def test_the_most_specific_entry_of_the_topics_decides(topics, engine):
    entries = (("traffic", "cma"), ("traffic:anpr", "matching_tree"))
    assert choice("naive", entries).of_expressions(tuple(topics)).name == engine


def test_followers_of_topics_get_the_engine_of_the_nearest_entry():
    engines = choice("naive", (("traffic", "cma"), ("traffic:anpr", "matching_tree")))
    north, gps = Topic.parse("traffic:anpr:north"), Topic.parse("traffic:gps")
    assert engines.of_topics([north]).name == "matching_tree"
    assert engines.of_topics([gps, Topic.parse("traffic")]).name == "cma"
    assert engines.of_topics([gps, north]).name == "naive"


def test_the_default_can_be_chosen_for_single_topics():
    engines = choice("cma", (("traffic", "default"),))
    assert isinstance(engines.of_expressions((expression("traffic"),)), BrokerEngines)
    assert not isinstance(engines.of_expressions((expression("weather"),)), BrokerEngines)


def test_figures_name_the_engines_and_how_many_subscriptions_they_have():
    told = choice("cma", (("A/B", "naive"),)).figures(7)
    assert told == {
        "engine": "cma",
        "topics": {"A:B": "naive"},
        "state": "running",
        "mode": "local",
        "subscriptions": 7,
        "lag": 0,
    }
