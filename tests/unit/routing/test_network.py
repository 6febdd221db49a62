"""Routers in a simulated network, whatever happens to it: the state machine of hypothesis, and stories.

Each node that wants a topic gets each reliable publication of it exactly once; what is not reliable comes at
most once; interest converges; and nothing is kept for long.
"""

import pytest
from benchmarks.tools.simulation import Conditions, Simulation
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hpwsn.routing.wire.effects import RouterSettings
from hpwsn.routing.wire.router_messages import PublicationId
from hpwsn_client.wsn.topics.topic_expressions import Topic

TOPICS = [Topic.parse(text) for text in ("A", "A:B", "A:B:C", "A:D", "E", "E:F:G")]
EXPRESSIONS = ["A", "A:B", "A/B", "A//*", "*", "//G", "E//.", "A/*/C", "E|A/D", ""]
PATIENT = RouterSettings(dead_grace=1e6, resend_after=3.0, resend_max=20.0)


def check_interest(simulation: Simulation) -> None:
    """Every node knows who wants what, near and far."""
    for topic in TOPICS:
        wanting = {name for name in simulation.wanting(topic) if simulation.nodes[name].running}
        for node in simulation.running():
            route, view = node.router.route(topic), node.router.view
            clusters = {simulation.nodes[name].cluster for name in wanting} - {node.cluster}
            near = {name for name in wanting if simulation.nodes[name].cluster == node.cluster}
            assert set(route.nodes) == near - {node.name}
            assert {simulation.nodes[name].cluster for name in route.cross} == (
                clusters if view.is_representative else set()
            )
            assert bool(route.up) == (bool(clusters) and not view.is_representative)


def check_idle(simulation: Simulation) -> None:
    """Nothing is kept, carried or waited for."""
    for node in simulation.running():
        figures = node.router.figures()
        assert not any(
            figures[key] for key in ("unacknowledged", "unacknowledged_bytes", "relayed", "storing")
        )
        assert figures["interests"] <= 2 * len(simulation.nodes)


class Network(RuleBasedStateMachine):
    """Nodes that come, go, die and lose their links while others publish."""

    @initialize(
        seed=st.integers(0, 2**32),
        sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
        loss=st.sampled_from((0.0, 0.1, 0.4)),
        latency=st.sampled_from((0.0005, 0.05)),
        wanted=st.lists(st.tuples(st.integers(0, 15), st.sampled_from(EXPRESSIONS)), max_size=8),
        at_once=st.booleans(),
    )
    def start(
        self,
        seed: int,
        sizes: list[int],
        loss: float,
        latency: float,
        wanted: list[tuple[int, str]],
        at_once: bool,
    ) -> None:
        conditions = Conditions(latency=latency, loss=loss, doubled=0.1, between_clusters=2 * latency)
        self.simulation = Simulation(seed, conditions, PATIENT)
        names = [(f"c{c}n{n}", f"c{c}") for c, size in enumerate(sizes) for n in range(size)]
        for batch in [names] if at_once else [[name] for name in names]:
            self.simulation.start(batch)
            self.simulation.run(0.01)
        for at, text in wanted:
            self.simulation.subscribe(names[at % len(names)][0], text)
        self.simulation.run(15)
        self.wanting = {topic: self.simulation.wanting(topic) for topic in TOPICS}
        self.reliable: list[tuple[PublicationId, Topic]] = []
        self.killed: list[str] = []
        self.left: list[str] = []
        self.passing: list[tuple[str, str]] = []

    def running(self) -> list[str]:
        return [node.name for node in self.simulation.running()]

    @rule(at=st.integers(0, 99), topic=st.sampled_from(TOPICS), reliable=st.booleans())
    def publish(self, at: int, topic: Topic, reliable: bool) -> None:
        running = self.running()
        publication = self.simulation.publish(running[at % len(running)], topic, reliable)
        if reliable:
            self.reliable.append((publication, topic))

    @precondition(lambda self: len(self.running()) > 1)
    @rule(at=st.integers(0, 99), noticed=st.sampled_from((0.01, 0.5, 6.0)))
    def kill(self, at: int, noticed: float) -> None:
        running = self.running()
        self.killed.append(running[at % len(running)])
        self.simulation.kill(self.killed[-1], noticed)

    @precondition(lambda self: self.killed)
    @rule(at=st.integers(0, 99))
    def restart(self, at: int) -> None:
        name = self.killed.pop(at % len(self.killed))
        self.simulation.start([(name, self.simulation.nodes[name].cluster)])

    @precondition(lambda self: len(self.running()) > 1 and len(self.simulation.nodes) < 20)
    @rule(at=st.integers(0, 99))
    def leave(self, at: int) -> None:
        running = self.running()
        name = running[at % len(running)]
        # What it published and others have not yet goes with it: a node that leaves waits for that.
        if self.simulation.nodes[name].router.floor is None:
            self.simulation.leave(name)
            self.left.append(name)

    @precondition(lambda self: len(self.simulation.nodes) < 20)
    @rule(cluster=st.integers(0, 4), text=st.sampled_from(EXPRESSIONS))
    def join(self, cluster: int, text: str) -> None:
        name = f"c{cluster}j{len(self.simulation.nodes)}"
        self.simulation.start([(name, f"c{cluster}")])
        self.simulation.subscribe(name, text)

    @precondition(lambda self: len(self.running()) > 1)
    @rule(one=st.integers(0, 99), other=st.integers(1, 99))
    def cut(self, one: int, other: int) -> None:
        running = self.running()
        first = one % len(running)
        second = (first + 1 + other % (len(running) - 1)) % len(running)
        self.simulation.cut(running[first], running[second])

    @rule(bits=st.integers(0, 2**20))
    def split(self, bits: int) -> None:
        self.simulation.split(name for at, name in enumerate(self.simulation.nodes) if bits >> at & 1)

    @rule()
    def heal(self) -> None:
        self.simulation.heal()

    @rule(at=st.integers(0, 99), text=st.sampled_from(EXPRESSIONS))
    def subscribe(self, at: int, text: str) -> None:
        running = self.running()
        self.passing.append((running[at % len(running)], text))
        self.simulation.subscribe(*self.passing[-1])

    @precondition(lambda self: self.passing)
    @rule()
    def unsubscribe(self) -> None:
        name, text = self.passing.pop()
        if self.simulation.nodes[name].running:
            self.simulation.unsubscribe(name, text)

    @rule(seconds=st.sampled_from((0.001, 0.05, 0.5, 5.0)))
    def wait(self, seconds: float) -> None:
        self.simulation.run(seconds)

    def teardown(self) -> None:
        simulation = self.simulation
        simulation.heal()
        simulation.start([(name, simulation.nodes[name].cluster) for name in (*self.killed, *self.left)])
        simulation.run(150)
        for publication, topic in self.reliable:
            # One that left is waited for only by those who knew it, so it need not have all.
            for name in self.wanting[topic] - {publication.origin, *self.left}:
                assert simulation.nodes[name].arrived[publication] == 1
        assert all(times == 1 for node in simulation.nodes.values() for times in node.arrived.values())
        check_interest(simulation)
        check_idle(simulation)


TestNetwork = Network.TestCase
TestNetwork.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def three_clusters(seed: int = 1, given: RouterSettings | None = None) -> Simulation:
    simulation = Simulation(seed, settings=given)
    simulation.start((f"c{c}n{n}", f"c{c}") for c in range(3) for n in range(3))
    simulation.run(1)
    return simulation


def test_a_publication_goes_straight_within_the_cluster_and_once_to_each_other_that_wants_it() -> None:
    simulation = three_clusters()
    for name in ("c0n2", "c1n1", "c1n2"):
        simulation.subscribe(name, "A")
    simulation.run(1)
    before = simulation.traffic.messages["Publication"]
    publication = simulation.publish("c0n1", TOPICS[2], False)
    simulation.run(1)
    assert {node.name for node in simulation.nodes.values() if node.arrived[publication]} == {
        "c0n2",
        "c1n1",
        "c1n2",
    }
    # One straight, one up, one across, two down.
    assert simulation.traffic.messages["Publication"] - before == 5


@pytest.mark.parametrize("reliable", [False, True])
def test_an_internal_topic_goes_nowhere_whatever_others_want(reliable: bool) -> None:
    """Neither from the node where it is internal, nor through that node, which represents its cluster."""
    simulation = three_clusters()
    for name in ("c0n0", "c0n1", "c0n2", "c1n1"):
        simulation.subscribe(name, "A")
    simulation.run(1)
    simulation.nodes["c0n0"].router._routes._is_internal = TOPICS[1].covers
    hidden = simulation.publish("c0n0", TOPICS[2], reliable)
    passing = simulation.publish("c0n1", TOPICS[2], reliable)
    public = simulation.publish("c0n0", TOPICS[0], reliable)
    simulation.run(5)

    def reached(publication: PublicationId) -> set[str]:
        return {node.name for node in simulation.nodes.values() if node.arrived[publication]}

    assert reached(hidden) == set()
    assert reached(passing) == {"c0n0", "c0n2"}
    assert reached(public) == {"c0n1", "c0n2", "c1n1"}
    check_idle(simulation)


def test_what_nobody_wants_is_sent_nowhere() -> None:
    simulation = three_clusters()
    simulation.subscribe("c1n1", "A:D")
    simulation.run(1)
    for reliable in (False, True):
        simulation.publish("c0n1", TOPICS[4], reliable)
    simulation.run(1)
    assert simulation.traffic.messages["Publication"] == 0


def test_traffic_goes_on_through_the_next_representative_as_soon_as_it_is_known() -> None:
    simulation = three_clusters()
    simulation.subscribe("c1n1", "A")
    simulation.run(1)
    simulation.kill("c1n0", noticed_after=0.5)
    simulation.kill("c0n0", noticed_after=0.5)
    meanwhile = [simulation.publish("c0n1", TOPICS[0], True) for _ in range(20)]
    simulation.run(1.0)
    after = simulation.publish("c0n1", TOPICS[0], False)
    simulation.run(0.5)
    arrived = simulation.nodes["c1n1"].arrived
    assert [arrived[publication] for publication in (*meanwhile, after)] == [1] * 21


def test_what_is_kept_for_a_node_that_stays_dead_is_given_up_and_said() -> None:
    simulation = three_clusters(given=RouterSettings(dead_grace=30.0))
    simulation.subscribe("c0n2", "A")
    simulation.run(1)
    simulation.kill("c0n2", noticed_after=0.1)
    publication = simulation.publish("c0n1", TOPICS[0], True)
    simulation.run(25)
    assert simulation.nodes["c0n1"].router.floor == publication.number and not simulation.abandoned
    simulation.run(10)
    assert simulation.nodes["c0n1"].router.floor is None
    assert [(each.number, each.target) for each in simulation.abandoned] == [(publication.number, "c0n2")]
    simulation.subscribe("c1n1", "E")
    simulation.run(1)
    assert not any(node.router.route(TOPICS[0]).wanted for node in simulation.running())


def test_a_representative_says_so_too_when_it_gives_up_what_came_from_another_cluster() -> None:
    simulation = three_clusters(given=RouterSettings(dead_grace=30.0))
    simulation.subscribe("c1n2", "A")
    simulation.run(1)
    simulation.kill("c1n2", noticed_after=0.1)
    publication = simulation.publish("c0n1", TOPICS[0], True)
    simulation.run(35)
    assert simulation.nodes["c0n1"].router.floor is None
    assert [(each.number, each.target) for each in simulation.abandoned] == [(publication.number, "c1n2")]


@pytest.mark.parametrize("names", [("c1n2",), ("c0n2",), ("c1n2", "c1n0", "c1n1")])
def test_a_node_that_is_stopped_and_started_gets_what_was_reliable_meanwhile(names: tuple[str, ...]) -> None:
    simulation = three_clusters()
    simulation.subscribe(names[0], "A")
    simulation.run(1)
    for name in names:
        simulation.leave(name)
    simulation.run(1)
    meanwhile = [simulation.publish("c0n1", TOPICS[0], True) for _ in range(20)]
    simulation.run(10)
    simulation.start((name, name[:2]) for name in names)
    simulation.run(10)
    assert [simulation.nodes[names[0]].arrived[publication] for publication in meanwhile] == [1] * 20
    assert not simulation.abandoned
    check_idle(simulation)


def test_a_node_that_left_for_good_is_waited_for_once_and_by_nobody_who_starts_later() -> None:
    simulation = three_clusters(given=RouterSettings(dead_grace=30.0))
    simulation.subscribe("c0n2", "A")
    simulation.run(1)
    simulation.leave("c0n2")
    simulation.run(35)
    simulation.start([("c0n9", "c0")])
    simulation.run(1)
    for name in ("c0n1", "c0n9", "c1n1"):
        simulation.publish(name, TOPICS[0], True)
    simulation.run(1)
    assert not simulation.abandoned
    check_idle(simulation)


def test_beyond_the_bound_a_router_says_that_it_is_full_until_others_acknowledge() -> None:
    simulation = three_clusters(given=RouterSettings(max_unacknowledged=3))
    simulation.subscribe("c1n1", "A")
    simulation.run(1)
    router = simulation.nodes["c0n1"].router
    for expected in (False, False, True):
        simulation.publish("c0n1", TOPICS[0], True)
        assert router.full is expected
    simulation.run(1)
    assert not router.full and router.floor is None


def test_one_router_survives_a_thousand_topics_with_bounded_memory() -> None:
    simulation = three_clusters(given=RouterSettings(max_routes=50, max_patterns=20))
    for number in range(100):
        simulation.subscribe("c1n1", f"T:x{number}")
    simulation.run(1)
    router = simulation.nodes["c0n1"].router
    assert all(router.route(Topic.parse(f"T:x{number}")).wanted for number in range(100))
    for number in range(1000):
        router.route(Topic.parse(f"U:x{number}"))
    assert router.figures()["ways"] <= 51 and router.figures()["patterns"] <= 21
