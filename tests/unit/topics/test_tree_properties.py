"""The tree against a naive one: every subscription asked about every topic, on random edits in both modes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.topics.tree.declarations import Declaration, EditError, add_declaration, move_topic, with_parents
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE, DIALECT_FULL, DIALECT_SIMPLE, HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression

OTHER = "urn:other"
NAMES = st.sampled_from("ABC")
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
TOPICS = st.builds(Topic, st.sampled_from([HPWSN_TOPICS, HPWSN_TOPICS, OTHER]), PATHS)


def _parse(text: str, dialect: str) -> TopicExpression:
    return parse_topic_expression(text, dialect, {"o": OTHER})


def _patterns() -> st.SearchStrategy[str]:
    step = st.sampled_from(["A", "B", "C", "*"])
    tail = st.lists(st.tuples(st.sampled_from(["/", "/", "//"]), step).map("".join), max_size=2).map("".join)
    start = st.tuples(st.sampled_from(["", "o:"]), st.sampled_from(["", "//"]), step).map("".join)
    one = st.tuples(start, tail, st.sampled_from(["", "", "//."])).map("".join)
    return st.lists(one, min_size=1, max_size=2).map("|".join)


SIMPLE = PATHS.map(lambda path: _parse(":".join(path), DIALECT_SIMPLE))
CONCRETE = TOPICS.map(lambda topic: TopicExpression.of(topic, DIALECT_CONCRETE))
FULL = _patterns().map(lambda text: _parse(text, DIALECT_FULL))
EXPRESSION = st.sampled_from([SIMPLE, CONCRETE, FULL, FULL]).flatmap(lambda kind: kind)
EXPRESSIONS = st.sampled_from([0, 1, 1, 1, 1, 2]).flatmap(lambda size: st.tuples(*[EXPRESSION] * size))
SUBSCRIBE = st.tuples(st.just("subscribe"), EXPRESSIONS, st.integers(0, 3))
EDIT = st.one_of(
    st.tuples(st.just("unsubscribe"), EXPRESSIONS, st.integers(0, 3)),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("retain"), TOPICS),
    st.tuples(st.just("release"), TOPICS),
    st.tuples(st.just("add"), TOPICS),
    st.tuples(st.just("remove"), TOPICS),
    st.tuples(st.just("move"), TOPICS, TOPICS),
    st.tuples(st.just("replace_all"), st.lists(TOPICS, max_size=4)),
)
# Every example has some topics, then several subscriptions among the edits: else most would try nothing.
STEPS = st.builds(
    lambda topics, steps: [("replace_all", topics), *steps],
    st.lists(TOPICS, min_size=2, max_size=6),
    st.lists(st.sampled_from([SUBSCRIBE, EDIT]).flatmap(lambda step: step), min_size=12, max_size=30),
)
Subscription = tuple[tuple[TopicExpression, ...], int]


@dataclass
class Naive:
    """What the tree should be, worked out anew each time it is asked."""

    fixed: bool
    simple_subtree: bool
    declared: list[Declaration] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    current: set[Topic] = field(default_factory=set)

    def matches(self, expressions: Iterable[TopicExpression], topic: Topic) -> bool:
        return all(expression.matches(topic, self.simple_subtree) for expression in expressions)

    def match(self, topic: Topic) -> set[int]:
        known = not self.fixed or topic in self.topics()
        return {who for what, who in self.subscriptions if not what or (known and self.matches(what, topic))}

    def topics(self) -> set[Topic]:
        used = {declaration.topic for declaration in self.declared}
        if not self.fixed:
            named = ((p.topic, what) for what, _ in self.subscriptions for e in what for p in e.patterns)
            used |= {topic for topic, what in named if topic is not None and self.matches(what, topic)}
            used |= self.current
        return {declaration.topic for declaration in with_parents(map(Declaration, used))}


def run(tree: TopicTree[int], naive: Naive, step: tuple) -> None:  # type: ignore[type-arg]
    match step:
        case ("subscribe", expressions, who):
            supported = not expressions or any(naive.matches(expressions, t) for t in naive.topics())
            try:
                tree.subscribe(expressions, who)
            except TopicNotSupportedFault:
                assert naive.fixed
                assert not supported
            else:
                assert supported or not naive.fixed
                if (expressions, who) not in naive.subscriptions:
                    naive.subscriptions.append((expressions, who))
        case ("unsubscribe", expressions, who):
            assert tree.unsubscribe(expressions, who) == ((expressions, who) in naive.subscriptions)
            naive.subscriptions = [s for s in naive.subscriptions if s != (expressions, who)]
        case ("end", index):
            if index < len(naive.subscriptions):
                assert tree.unsubscribe(*naive.subscriptions.pop(index))
        case ("retain", topic):
            tree.retain(topic, 1)
            naive.current.add(topic)
        case ("release", topic):
            tree.release(topic)
            naive.current.discard(topic)
        case ("add", topic):
            tree.add(topic)
            naive.declared = add_declaration(naive.declared, Declaration(topic))
        case ("replace_all", topics):
            tree.replace_all(map(Declaration, topics))
            naive.declared = with_parents(map(Declaration, topics))
        case ("remove", topic):
            tree.remove(topic)
            naive.declared = [d for d in naive.declared if not topic.covers(d.topic)]
        case ("move", topic, new):
            try:
                naive.declared = move_topic(naive.declared, topic, new)
                allowed = True
            except EditError:
                allowed = False
            try:
                tree.move(topic, new)
                assert allowed
            except EditError:
                assert not allowed


def everything(paths: Iterable[tuple[str, ...]]) -> list[Topic]:
    return [Topic(namespace, path) for namespace in (HPWSN_TOPICS, OTHER) for path in paths]


ALL_TOPICS = everything(
    [(a, *b) for a in "ABC" for b in ((), *((x, *c) for x in "ABC" for c in ((), *"ABC")))]
)


@settings(max_examples=120, deadline=None)
@given(st.booleans(), st.booleans(), STEPS)
def test_tree_equals_the_naive_one_after_any_edits(fixed: bool, simple_subtree: bool, steps: list) -> None:  # type: ignore[type-arg]
    tree: TopicTree[int] = TopicTree(fixed=fixed, simple_subtree=simple_subtree)
    naive = Naive(fixed, simple_subtree)
    for step in steps:
        run(tree, naive, step)
        assert set(tree.topics()) == naive.topics()
    for topic in ALL_TOPICS:
        found = list(tree.match(topic))
        assert len(found) == len(set(found))
        assert set(found) == naive.match(topic)
    assert set(tree.match(None)) == {who for what, who in naive.subscriptions if not what}


@settings(max_examples=100, deadline=None)
@given(st.booleans(), STEPS)
def test_tree_after_edits_equals_one_built_anew(fixed: bool, steps: list) -> None:  # type: ignore[type-arg]
    tree: TopicTree[int] = TopicTree(fixed=fixed)
    naive = Naive(fixed, True)
    for step in steps:
        run(tree, naive, step)
    anew: TopicTree[int] = TopicTree(naive.declared, fixed=fixed)
    for expressions, who in naive.subscriptions:
        anew.subscribe(expressions, who, restore=True)
    for topic in naive.current:
        anew.retain(topic, 1)
    assert _shape(tree) == _shape(anew)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_a_fixed_tree_that_opens_equals_an_open_one_built_anew(steps: list) -> None:  # type: ignore[type-arg]
    tree: TopicTree[int] = TopicTree(fixed=True)
    naive = Naive(True, True)
    for step in steps:
        run(tree, naive, step)
    tree.open_up()
    anew: TopicTree[int] = TopicTree(naive.declared)
    for expressions, who in naive.subscriptions:
        anew.subscribe(expressions, who)
    for topic in naive.current:
        anew.retain(topic, 1)
    assert _shape(tree) == _shape(anew)
    assert all(tree.current(topic) == 1 for topic in naive.current)


def _shape(tree: TopicTree[int]) -> dict[Topic, tuple[bool, frozenset[int], int]]:
    return {
        node.topic: (node.declared, frozenset(node.subscribers), node.parent.code.count("."))
        for node in tree.nodes()
    }


@settings(max_examples=100, deadline=None)
@given(st.booleans(), STEPS)
def test_ending_every_subscription_and_message_leaves_only_what_is_declared(fixed: bool, steps: list) -> None:  # type: ignore[type-arg]
    tree: TopicTree[int] = TopicTree(fixed=fixed)
    naive = Naive(fixed, True)
    for step in steps:
        run(tree, naive, step)
    for expressions, who in naive.subscriptions:
        tree.unsubscribe(expressions, who)
    for topic in naive.current:
        tree.release(topic)
    assert set(tree.topics()) == {declaration.topic for declaration in naive.declared}
    assert not any(node.groups for node in tree.nodes())
    assert len(tree._index) == len(tree._subscription_counts) == tree._multiple == 0


@settings(max_examples=200, deadline=None)
@given(st.lists(TOPICS, max_size=6), EXPRESSION)
def test_topics_an_expression_names_are_those_a_naive_loop_finds(
    topics: list[Topic], what: TopicExpression
) -> None:
    tree: TopicTree[int] = TopicTree(map(Declaration, topics), fixed=True)
    assert set(tree.concrete(what)) == {topic for topic in tree.topics() if what.matches(topic, False)}


@settings(max_examples=200, deadline=None)
@given(st.lists(TOPICS, max_size=6))
def test_codes_are_unique_and_start_with_the_parents(topics: list[Topic]) -> None:
    tree: TopicTree[int] = TopicTree(map(Declaration, topics))
    codes = [node.code for node in tree.nodes()]
    assert len(set(codes)) == len(codes)
    assert all(node.code.rpartition(".")[0] == node.parent.code for node in tree.nodes())
