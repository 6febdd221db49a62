"""A group finds exactly those whose filters hold, small or indexed, whoever came and went."""

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.matching.content.content_group import COMPILE_AT, INDEX_ABOVE, UNINDEX_BELOW, ContentGroup
from hpwsn.matching.engine.compiled_kernel import match_compiled
from hpwsn.matching.engine.kernels import match_numpy
from hpwsn.matching.language.reference_engine import NaiveEngine
from hpwsn.node.content_engines import NEVER, BrokerEngines
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH


def predicate(text):
    return ContentFilter(DIALECT_PREDICATES, text)


def xpath(text):
    return ContentFilter(DIALECT_XPATH, text)


POOL = [
    *((predicate(f"speed > {n}"),) for n in range(0, 60)),
    *((predicate(f"speed < {n} or colour = 'red'"),) for n in range(20)),
    *((predicate(f"speed != {n}"), predicate("exists(colour)")) for n in range(10)),
    *((xpath(f"speed > {n}"),) for n in range(10)),
    *((xpath(f"count(speed) = {n}"),) for n in range(5)),
    *((predicate(f"speed >= {n}"), xpath("@colour = 'red'")) for n in range(10)),
]
payloads = st.builds(
    lambda speeds, colour: "<car{}>{}</car>".format(
        f" colour='{colour}'" if colour else "", "".join(f"<speed>{speed}</speed>" for speed in speeds)
    ).encode(),
    st.lists(st.sampled_from(["-1", "0", "5", "19.5", "61", "fast"]), max_size=2),
    st.sampled_from(["", "red", "blue"]),
)


class Engines:
    """Counts what it is asked for."""

    def __init__(self):
        self.made = self.prepared = 0

    def make(self):
        self.made += 1
        return NaiveEngine()

    def prepare(self):
        self.prepared += 1


def filled(engines, places):
    filters = ContentFilters()
    group = ContentGroup(engines)
    for number, place in enumerate(places):
        filters.acquire(POOL[place])
        group.add(number, filters.find(POOL[place]))
    return filters, group


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, len(POOL) - 1), max_size=120),
    st.sets(st.integers(0, 119), max_size=110),
    st.lists(payloads, min_size=1, max_size=3),
)
def test_those_are_found_whose_filters_hold(places, leaving, several):
    filters, group = filled(BrokerEngines(NEVER), places)
    for number in leaving & set(range(len(places))):
        group.discard(number, filters.find(POOL[places[number]]))
    staying = [number for number in range(len(places)) if number not in leaving]
    found = group.match([filters.evaluation(payload) for payload in several])
    for payload, each in zip(several, found, strict=True):
        holds = filters.evaluation(payload).holds
        assert sorted(each) == [number for number in staying if holds(POOL[places[number]])]
    assert sorted(group) == staying
    assert len(group) == len(staying)
    assert bool(group) is bool(staying)


def test_a_small_group_has_no_engine_and_gives_one_back_when_it_shrinks():
    engines = Engines()
    filters, group = filled(engines, [*range(INDEX_ABOVE), *range(INDEX_ABOVE), 102])
    assert (len(group), engines.made) == (2 * INDEX_ABOVE + 1, 0)
    filters.acquire(POOL[INDEX_ABOVE])
    group.add("large", filters.find(POOL[INDEX_ABOVE]))
    assert engines.made == 1
    for number in range(INDEX_ABOVE - UNINDEX_BELOW + 3):
        group.discard(number, filters.find(POOL[number]))
        group.discard(number + INDEX_ABOVE, filters.find(POOL[number]))
    group.discard("nobody", filters.find(POOL[INDEX_ABOVE]))
    assert "large" in group.match([filters.evaluation(b"<car><speed>1000</speed></car>")])[0]
    for number in range(INDEX_ABOVE):
        filters.acquire(POOL[number])
        group.add(f"again {number}", filters.find(POOL[number]))
    assert engines.made == 2


def test_a_large_group_asks_for_the_compiled_kernel_once():
    engines, filters = Engines(), ContentFilters()
    group = ContentGroup(engines)
    for number in range(COMPILE_AT + 10):
        wanted = (predicate(f"speed = {number}"),)
        filters.acquire(wanted)
        group.add(number, filters.find(wanted))
    assert (engines.made, engines.prepared) == (1, 1)


def test_engines_go_on_with_the_compiled_kernel_when_it_is_there():
    engines = BrokerEngines()
    filters, group = filled(engines, range(len(POOL)))
    payload = b"<car colour='red'><speed>30</speed></car>"
    before = group.match([filters.evaluation(payload)])[0]
    engines.prepare()
    engines._thread.join()
    assert engines._kernel is match_compiled
    assert sorted(group.match([filters.evaluation(payload)])[0]) == sorted(before)


def test_engines_go_on_with_numpy_where_the_compiler_fails(monkeypatch, caplog):
    failed = subprocess.CompletedProcess([], 1, "", "no room left")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    engines = BrokerEngines()
    engines.make()
    engines.prepare()
    engines._thread.join()
    assert engines._kernel is match_numpy
    assert "no room left" in caplog.text
