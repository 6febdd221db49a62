"""The registry of members, with a clock of the test's own."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.topology.topology import Topology
from hpwsn_admin.registry import (
    Announcement,
    NameTaken,
    NotRegistered,
    Now,
    Registry,
    RegistryError,
    RegistryFull,
)

HEARTBEAT = 2.0


def at(seconds: float) -> Now:
    return Now(1000 + seconds, 1_800_000_000 + seconds)


def node(name: str, cluster: str = "plant", session: str = "s1", identity: str = "") -> Announcement:
    url = f"http://{name}:8080"
    return Announcement(name, cluster, url, name, 4000, "1.0", identity or f"id of {name}", session)


@pytest.fixture
def registry() -> Registry:
    return Registry(heartbeat=HEARTBEAT, missed=3, forget=100, limit=5, now=at(0))


def representative(registry: Registry, cluster: str = "plant") -> str | None:
    found = registry.topology().cluster(cluster)
    assert found is not None
    return found.representative


def states(registry: Registry) -> dict[str, str]:
    return {member.name: member.state for member in registry.topology()}


class TestSilence:
    def test_one_whose_heartbeat_is_overdue_is_late_and_before_two_it_is_silent(
        self, registry: Registry
    ) -> None:
        record = registry.register(node("a"), at(0))
        for seconds in (1.0, 2.4):
            registry.tick(at(seconds))
        assert registry.overdue(at(2.4)) == [] and registry.overdue(at(2.5)) == [record]
        assert not registry.is_silent(record, at(3.4)) and registry.is_silent(record, at(3.5))
        registry.heartbeat_of("a", "s1", at(4.1))
        assert registry.overdue(at(4.2)) == [] and not registry.is_silent(record, at(4.2))

    def test_nobody_is_silent_who_has_gone_or_could_not_be_heard_while_this_process_stood_still(
        self, registry: Registry
    ) -> None:
        record = registry.register(node("a"), at(0))
        assert not registry.is_silent(record, at(60))
        registry.tick(at(60))
        assert registry.overdue(at(60)) == []
        registry.leave("a", "s1", at(60))
        assert registry.overdue(at(70)) == [] and not registry.is_silent(record, at(60.1))


class TestRepresentatives:
    def test_the_first_to_register_represents_its_cluster(self, registry: Registry) -> None:
        for name in ("b", "a", "c"):
            registry.register(node(name), at(0))
        registry.register(node("z", "office"), at(0))
        assert representative(registry) == "b"
        assert representative(registry, "office") == "z"

    def test_the_next_takes_over_when_it_dies_and_again_when_that_one_leaves(
        self, registry: Registry
    ) -> None:
        for name in ("b", "a", "c"):
            registry.register(node(name), at(0))
        registry.mark_dead("b", "s1", at(1))
        assert representative(registry) == "a"
        registry.leave("a", "s1", at(2))
        assert representative(registry) == "c"
        registry.leave("c", "s1", at(3))
        assert representative(registry) is None

    def test_one_that_comes_back_from_the_dead_is_the_last_in_the_row(self, registry: Registry) -> None:
        for name in ("b", "a"):
            registry.register(node(name), at(0))
        registry.mark_dead("b", "s1", at(1))
        registry.register(node("b"), at(2))
        assert representative(registry) == "a"
        registry.leave("a", "s1", at(3))
        assert representative(registry) == "b"

    def test_a_new_process_of_the_representative_gives_the_part_away(self, registry: Registry) -> None:
        for name in ("b", "a"):
            registry.register(node(name), at(0))
        registry.register(node("b", session="s2"), at(1))
        assert representative(registry) == "a"

    def test_registering_again_in_the_same_session_changes_nothing(self, registry: Registry) -> None:
        for name in ("b", "a"):
            registry.register(node(name), at(0))
        version = registry.version
        registry.register(node("b"), at(1))
        assert (representative(registry), registry.version) == ("b", version)


class TestHeartbeats:
    def test_a_node_is_dead_after_three_missed_ones_and_not_before(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        for tick in (1, 3, 5):
            registry.tick(at(tick))
        assert not registry.tick(at(5.99))
        assert [record.name for record in registry.tick(at(6))] == ["a"]
        assert states(registry) == {"a": "dead"}

    def test_a_node_that_is_heard_lives_on(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        for tick in range(1, 40):
            registry.heartbeat_of("a", "s1", at(tick))
            assert not registry.tick(at(tick))

    def test_a_heartbeat_of_a_dead_node_is_refused_so_that_it_registers(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        registry.mark_dead("a", "s1", at(1))
        with pytest.raises(NotRegistered, match="'a' is not registered"):
            registry.heartbeat_of("a", "s1", at(1))

    def test_a_heartbeat_of_a_former_process_is_refused(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        registry.register(node("a", session="s2"), at(1))
        with pytest.raises(NotRegistered):
            registry.heartbeat_of("a", "s1", at(1))
        registry.mark_dead("a", "s1", at(2))
        assert states(registry) == {"a": "alive"}

    def test_nobody_dies_of_a_pause_of_the_admin_itself(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        registry.tick(at(1))
        assert not registry.tick(at(500))
        assert not registry.tick(at(502))
        assert registry.tick(at(506))

    def test_the_dead_are_forgotten_after_their_time_and_the_living_are_not(self, registry: Registry) -> None:
        for name in ("a", "b"):
            registry.register(node(name), at(0))
        registry.leave("a", "s1", at(1))
        for second in range(2, 101):
            registry.heartbeat_of("b", "s1", at(second))
            registry.tick(at(second))
        assert states(registry) == {"a": "left", "b": "alive"}
        registry.tick(at(101))
        assert states(registry) == {"b": "alive"}

    def test_one_that_was_given_up_as_it_stopped_has_left(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        registry.mark_dead("a", "s1", at(1))
        registry.leave("a", "s1", at(2))
        assert states(registry) == {"a": "left"}
        with pytest.raises(NotRegistered):
            registry.leave("a", "s1", at(3))


class TestNames:
    def test_a_name_of_a_live_node_is_refused_to_another_in_words_that_help(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        with pytest.raises(NameTaken, match=r"taken by a live node .* at http://a:8080; .* --name"):
            registry.register(node("a", identity="another"), at(1))
        assert len(registry.topology()) == 1

    def test_the_same_node_takes_its_name_back_at_once(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        again = replace(node("a", session="s2"), port=4001)
        registry.register(again, at(1))
        member = registry.topology().member("a")
        assert member is not None
        assert (member.port, member.state) == (4001, "alive")

    @pytest.mark.parametrize("end", ["leave", "mark_dead"])
    def test_a_name_that_is_free_again_goes_to_whoever_wants_it(self, registry: Registry, end: str) -> None:
        registry.register(node("a"), at(0))
        getattr(registry, end)("a", "s1", at(1))
        registry.register(node("a", identity="another"), at(2))
        assert states(registry) == {"a": "alive"}

    def test_the_same_name_in_two_clusters_is_the_same_name(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        with pytest.raises(NameTaken):
            registry.register(node("a", "office", identity="another"), at(1))


class TestLimit:
    def test_a_node_over_the_limit_is_refused(self, registry: Registry) -> None:
        for number in range(5):
            registry.register(node(f"n{number}"), at(0))
        with pytest.raises(RegistryFull, match=r"5 nodes are registered.*admin\.limit"):
            registry.register(node("one more"), at(1))

    def test_the_dead_make_room_before_their_time(self, registry: Registry) -> None:
        for number in range(5):
            registry.register(node(f"n{number}"), at(0))
        registry.mark_dead("n3", "s1", at(1))
        registry.register(node("one more"), at(2))
        assert "n3" not in states(registry)

    def test_only_one_that_is_gone_can_be_forgotten(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        with pytest.raises(RegistryError, match="is alive"):
            registry.forget("a")
        registry.leave("a", "s1", at(1))
        registry.forget("a")
        assert not states(registry)
        with pytest.raises(NotRegistered):
            registry.forget("a")


class TestRestart:
    def test_the_state_comes_back_with_its_order_and_a_higher_version(self, registry: Registry) -> None:
        for name in ("b", "a"):
            registry.register(node(name), at(0))
        registry.mark_dead("b", "s1", at(1))
        after = Registry(heartbeat=HEARTBEAT, now=at(-500))
        after.restore(registry.dump(), at(50))
        assert states(after) == states(registry)
        assert representative(after) == "a"
        assert after.version > registry.version
        registered = after.register(node("a"), at(51))
        assert registered.turn == 2

    def test_those_who_lived_have_the_usual_time_to_be_heard(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        after = Registry(heartbeat=HEARTBEAT, now=at(500))
        after.restore(registry.dump(), at(500))
        for tick in (502, 504, 505.9):
            assert not after.tick(at(tick))
        assert after.tick(at(506))

    def test_an_admin_without_its_state_does_not_repeat_old_versions(self, registry: Registry) -> None:
        registry.register(node("a"), at(0))
        assert Registry(heartbeat=HEARTBEAT, now=at(60)).version > registry.version


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["register", "restart", "beat", "mark_dead", "leave", "tick"]),
        st.sampled_from("abcd"),
        st.floats(0, 5),
    ),
    max_size=40,
)


@given(_STEPS)
def test_whatever_happens_a_live_cluster_has_one_live_representative_and_versions_tell_changes(
    steps: list[tuple[str, str, float]],
) -> None:
    registry, now, sessions = Registry(heartbeat=HEARTBEAT, now=at(0)), 0.0, dict.fromkeys("abcd", 0)
    for step, name, pause in steps:
        now += pause
        before = registry.topology()
        try:
            if step in ("register", "restart"):
                sessions[name] += step == "restart"
                cluster = "plant" if name < "c" else "office"
                registry.register(node(name, cluster, str(sessions[name])), at(now))
            elif step == "beat":
                registry.heartbeat_of(name, str(sessions[name]), at(now))
            elif step == "tick":
                registry.tick(at(now))
            else:
                getattr(registry, step)(name, str(sessions[name]), at(now))
        except NotRegistered:
            pass
        after = registry.topology()
        assert (before.encode() == after.encode()) == (before.version == after.version)
        assert Topology.parse(after.encode()) == after
        for cluster_now in after.clusters:
            alive = [member.name for member in cluster_now.nodes if member.alive]
            assert cluster_now.representative == (alive[0] if alive else None)
