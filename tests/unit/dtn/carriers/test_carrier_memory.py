"""What a node remembers of other nodes and of carriers, and the ids of carried events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.dtn.bundles.bundle import NOTHING, Bundle, CarriedEvent, Known, Origin
from hpwsn.dtn.carriers.carried_ids import carried_id, is_reserved, offered, parse_carried_id
from hpwsn.dtn.carriers.carrier_memory import MOST_CARRIERS, MOST_NODES, CarrierMemory, Wanted

VALLEY, SUMMIT = Origin("valley", 1), Origin("summit", 1)
numbers = st.integers(0, 2**63 - 1)


def bundle(made: int, has: Known, maker: Origin = SUMMIT) -> Bundle:
    return Bundle(maker, "valley", "", made, {VALLEY: has})


def test_a_node_of_which_nothing_was_heard_lacks_everything() -> None:
    assert CarrierMemory().wanted("summit", "ranger", again=False).known(VALLEY) == NOTHING


def test_the_newest_bundle_of_a_node_counts() -> None:
    memory = CarrierMemory()
    assert memory.hear(bundle(2, Known(5)))
    assert not memory.hear(bundle(1, Known(9)))
    assert not memory.hear(bundle(2, Known(9)))
    assert memory.wanted("summit", "", again=False).known(VALLEY) == Known(5)
    assert memory.hear(bundle(3, Known(4)))
    assert memory.wanted("summit", "", again=False).known(VALLEY) == Known(4)


def test_what_a_carrier_was_given_counts_for_this_carrier_and_node_only() -> None:
    memory = CarrierMemory()
    memory.give("summit", "ranger", {VALLEY: 7})
    assert memory.wanted("summit", "ranger", again=False).known(VALLEY) == Known(7)
    assert memory.wanted("summit", "ranger", again=True).known(VALLEY) == NOTHING
    assert memory.wanted("summit", "herder", again=False).known(VALLEY) == NOTHING
    assert memory.wanted("coast", "ranger", again=False).known(VALLEY) == NOTHING
    assert memory.wanted("summit", "", again=False).known(VALLEY) == NOTHING


def test_what_a_carrier_was_given_does_not_shrink() -> None:
    memory = CarrierMemory()
    memory.give("summit", "ranger", {VALLEY: 7, SUMMIT: 1})
    memory.give("summit", "ranger", {VALLEY: 5})
    assert memory.given["summit", "ranger"] == {VALLEY: 7, SUMMIT: 1}


@pytest.mark.parametrize(
    ("has", "given", "known"),
    [
        (Known(5), 3, Known(5)),
        (Known(5), 5, Known(5)),
        (Known(5), 9, Known(9)),
        (Known(9, ((2, 4), (6, 8))), 1, Known(9, ((2, 4), (6, 8)))),
        (Known(9, ((2, 4), (6, 8))), 3, Known(9, ((3, 4), (6, 8)))),
        (Known(9, ((2, 4), (6, 8))), 8, Known(9)),
    ],
)
def test_a_carrier_gets_what_neither_it_nor_the_node_has(has: Known, given: int, known: Known) -> None:
    wanted = Wanted("summit", {VALLEY: has}, {VALLEY: given})
    assert wanted.known(VALLEY) == known
    assert all(known.has(n) == (has.has(n) or n <= given) for n in range(12))


def test_the_nodes_and_carriers_that_are_remembered_are_bounded() -> None:
    memory = CarrierMemory()
    for number in range(MOST_NODES + 1):
        memory.hear(bundle(1, Known(1), Origin(f"node-{number}", 1)))
    for number in range(MOST_CARRIERS + 1):
        memory.give("summit", f"carrier-{number}", {VALLEY: 1})
    assert len(memory.heard) == MOST_NODES
    assert len(memory.given) == MOST_CARRIERS
    assert "node-0" not in memory.heard
    assert ("summit", "carrier-0") not in memory.given


@given(st.text(), numbers, numbers, numbers, numbers)
def test_an_id_says_where_an_event_came_from(
    name: str, epoch: int, number: int, prev: int, time: int
) -> None:
    found = parse_carried_id(carried_id(CarriedEvent(Origin(name, epoch), number, prev, time, None, b"")))
    assert found == ((name, epoch), number, prev, time)


@pytest.mark.parametrize("text", [None, "", "order-7", "urn:hpwsn:carried", "urn:uuid:1"])
def test_other_ids_say_nothing(text: str | None) -> None:
    assert parse_carried_id(text) is None
    assert not is_reserved(text)


@given(st.text())
def test_an_id_that_only_begins_like_one_is_reserved_and_says_nothing(text: str) -> None:
    assert is_reserved("urn:hpwsn:carried:" + text)
    found = offered("urn:hpwsn:carried:" + text)
    assert found is None or text.count(":") >= 4
