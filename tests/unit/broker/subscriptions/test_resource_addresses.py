"""Ids that tell their owner."""

from hpwsn.broker.subscriptions.resource_addresses import PLAIN_IDS, ResourceIds, mark_of, owner_mark


def test_ids_of_a_node_alone_are_twelve_random_bytes() -> None:
    ids = {PLAIN_IDS() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(bytes.fromhex(id_)) == 12 and owner_mark(id_) is None for id_ in ids)
    assert not any(PLAIN_IDS.is_elsewhere(ResourceIds(name)()) for name in "ab")


def test_ids_of_a_cluster_are_known_to_their_owner_and_to_others() -> None:
    here, there = ResourceIds("north"), ResourceIds("süd")
    assert owner_mark(here()) == mark_of("north")
    assert not here.is_elsewhere(here())
    assert here.is_elsewhere(there())
    assert there.is_elsewhere(here())


def test_what_is_no_marked_id_is_nobody_elses() -> None:
    ids = ResourceIds("north")
    assert not any(map(ids.is_elsewhere, ("", "x", PLAIN_IDS(), f"{PLAIN_IDS()}-", f"x-{mark_of('süd')}")))
