"""The topic tree by example; its equality with a naive one is in test_tree_properties."""

import gc
import sys
import tracemalloc

import pytest

from hpwsn.topics.tree.declarations import Declaration, EditError
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.faults import TopicNotSupportedFault
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE, DIALECT_FULL, DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression

T = Topic.parse
WEATHER = "http://example.com/weather"


def simple(text: str) -> tuple[TopicExpression, ...]:
    return (parse_topic_expression(text, DIALECT_SIMPLE, {}),)


def concrete(text: str) -> tuple[TopicExpression, ...]:
    return (parse_topic_expression(text, DIALECT_CONCRETE, {}),)


def full(text: str) -> tuple[TopicExpression, ...]:
    return (parse_topic_expression(text, DIALECT_FULL, {"w": WEATHER}),)


def fixed(*topics: str) -> TopicTree[str]:
    return TopicTree([Declaration(T(topic)) for topic in topics], fixed=True)


def test_simple_subscription_covers_the_subtree_and_nothing_beside_it() -> None:
    tree = fixed("ALL:ALARM:ALARM1", "ALL:OTHER")
    tree.subscribe(simple("ALL:ALARM"), "s")
    assert [str(t) for t in tree.topics() if tree.match(t)] == ["ALL:ALARM", "ALL:ALARM:ALARM1"]


def test_simple_names_only_itself_when_the_setting_says_so() -> None:
    tree: TopicTree[str] = TopicTree(simple_subtree=False)
    tree.subscribe(simple("ALL"), "s")
    tree.publish(T("ALL:ALARM"))
    assert list(tree.match(T("ALL"))) == ["s"]
    assert not tree.match(T("ALL:ALARM"))


def test_concrete_subscription_does_not_cover_the_subtree() -> None:
    tree = fixed("ALL:ALARM")
    tree.subscribe(concrete("ALL"), "s")
    assert list(tree.match(T("ALL"))) == ["s"]
    assert not tree.match(T("ALL:ALARM"))


def test_all_expressions_of_a_subscription_must_match() -> None:
    tree = fixed("ALL:A:X", "ALL:B:X", "ALL:A:Y")
    tree.subscribe(simple("ALL:A") + full("ALL/*/X"), "s")
    assert [str(t) for t in tree.topics() if tree.match(t)] == ["ALL:A:X"]


def test_message_without_a_topic_goes_only_to_subscribers_without_a_filter() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe((), "all")
    tree.subscribe(full("//*"), "topics")
    assert list(tree.match(None)) == ["all"]
    assert set(tree.match(T("A"))) == {"all", "topics"}


def test_subscriber_with_overlapping_subscriptions_is_found_once_and_kept_until_the_last_ends() -> None:
    tree: TopicTree[str] = TopicTree()
    for expressions in (simple("ALL"), concrete("ALL:A"), ()):
        tree.subscribe(expressions, "s")
    assert list(tree.match(T("ALL:A"))) == ["s"]
    tree.unsubscribe(simple("ALL"), "s")
    tree.unsubscribe((), "s")
    assert list(tree.match(T("ALL:A"))) == ["s"]
    tree.unsubscribe(concrete("ALL:A"), "s")
    assert not tree.match(T("ALL:A"))


def test_repeated_subscription_counts_once() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe(simple("ALL"), "s")
    tree.subscribe(simple("ALL"), "s")
    assert list(tree.match(T("ALL"))) == ["s"]
    assert tree.unsubscribe(simple("ALL"), "s")
    assert not tree.unsubscribe(simple("ALL"), "s")
    assert not tree.match(T("ALL"))


def test_same_path_in_another_namespace_is_another_topic() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe(full("w:Storm//."), "weather")
    tree.subscribe(full("Storm//."), "ours")
    assert list(tree.match(Topic(WEATHER, ("Storm", "Hail")))) == ["weather"]
    assert list(tree.match(T("Storm:Hail"))) == ["ours"]


def test_open_topic_gets_the_subscribers_of_subtrees_and_wildcards_when_it_appears() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe(simple("ALL"), "subtree")
    tree.subscribe(full("ALL/*/B"), "wildcard")
    tree.subscribe(full("ALL/*"), "other")
    assert tree.find(T("ALL:A:B")) is None
    assert set(tree.match(T("ALL:A:B"))) == {"subtree", "wildcard"}
    assert set(tree.publish(T("ALL:A:B")).subscribers) == {"subtree", "wildcard"}
    assert set(tree.match(T("ALL:A:B"))) == {"subtree", "wildcard"}


def test_open_topic_vanishes_with_its_last_naming_subscriber_and_its_parents_with_it() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe(concrete("A:B:C"), "s")
    tree.subscribe(simple("A:B:C"), "t")
    assert [str(topic) for topic in tree.topics()] == ["A", "A:B", "A:B:C"]
    tree.unsubscribe(concrete("A:B:C"), "s")
    assert len(tree) == 3
    tree.unsubscribe(simple("A:B:C"), "t")
    assert len(tree) == 0


def test_open_topic_vanishes_with_its_last_retained_message() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe(concrete("A"), "s")
    tree.retain(T("A:B"), 7)
    tree.unsubscribe(concrete("A"), "s")
    node = tree.find(T("A:B"))
    assert node is not None
    assert node.current == 7
    tree.release(T("A:B"))
    assert not list(tree.topics())


def test_open_topic_that_is_only_covered_vanishes_with_its_message_and_returns_with_its_subscribers() -> None:
    tree: TopicTree[str] = TopicTree()
    tree.subscribe(simple("A"), "s")
    tree.retain(T("A:B"), 1)
    tree.release(T("A:B"))
    assert [str(topic) for topic in tree.topics()] == ["A"]
    assert tree.publish(T("A:B")).subscribers == ("s",)


def test_full_open_tree_refuses_new_topics_and_leaves_nothing_of_them() -> None:
    tree: TopicTree[str] = TopicTree(limit=2)
    tree.subscribe(concrete("A:B"), "s")
    with pytest.raises(TopicNotSupportedFault, match=r"topic C .*no more than 2 topics.*open_limit"):
        tree.publish(T("C"))
    with pytest.raises(TopicNotSupportedFault, match="A:X"):
        tree.subscribe(concrete("A:X"), "t")
    tree.subscribe(simple("A"), "t")
    tree.unsubscribe(concrete("A:B"), "s")
    tree.publish(T("A:X"))
    assert tree.match(T("A:X")) == ["t"]


def test_fixed_tree_refuses_unknown_topics_and_names_near_ones() -> None:
    tree = fixed("ALL:ALARM:FIRE", "ALL:OTHER")
    for act in (
        lambda: tree.publish(T("ALL:ALRAM:FIRE")),
        lambda: tree.subscribe(concrete("ALL:ALRAM:FIRE"), "s"),
    ):
        with pytest.raises(
            TopicNotSupportedFault, match=r"ALL:ALRAM:FIRE .*did you mean ALL:ALARM:FIRE"
        ) as caught:
            act()
        assert "OTHER" not in caught.value.reason
    with pytest.raises(TopicNotSupportedFault, match="did you mean ALL:ALARM:FIRE"):
        tree.publish(T("FIRE"))


def test_fixed_tree_refuses_a_wildcard_or_a_combination_that_matches_nothing() -> None:
    tree = fixed("ALL:A", "ALL:B")
    with pytest.raises(TopicNotSupportedFault, match=r"matches ALL/A/\*"):
        tree.subscribe(full("ALL/A/*"), "s")
    with pytest.raises(TopicNotSupportedFault, match="matches ALL:A and ALL:B"):
        tree.subscribe(simple("ALL:A") + simple("ALL:B"), "s")
    assert not any(tree.match(topic) for topic in tree.topics())


def test_restored_subscription_waits_for_its_topic_to_come_back() -> None:
    tree = fixed("ALL")
    tree.subscribe(concrete("ALL:A"), "s", restore=True)
    with pytest.raises(TopicNotSupportedFault):
        tree.subscribe(concrete("ALL:A"), "new")
    tree.add(T("ALL:A"))
    assert list(tree.match(T("ALL:A"))) == ["s"]


def test_removed_subtree_gets_nothing_and_its_subscriptions_return_with_it() -> None:
    tree = fixed("ALL:A:B")
    tree.subscribe(concrete("ALL:A:B"), "s")
    tree.subscribe((), "everything")
    assert tree.remove(T("ALL:A"))
    assert not tree.remove(T("ALL:A"))
    assert list(tree.match(T("ALL:A:B"))) == ["everything"]
    with pytest.raises(TopicNotSupportedFault):
        tree.publish(T("ALL:A:B"))
    tree.add(T("ALL:A:B"))
    assert set(tree.match(T("ALL:A:B"))) == {"s", "everything"}


def test_current_message_of_a_removed_topic_is_not_noted() -> None:
    tree = fixed("ALL:A")
    tree.remove(T("ALL:A"))
    tree.retain(T("ALL:A"), 3)
    assert tree.find(T("ALL:A")) is None


def test_moved_subtree_belongs_to_the_subscriptions_of_its_new_place() -> None:
    tree = fixed("OLD:X:Y", "NEW")
    tree.add(T("OLD:X:Y"), description="leaf", routing="tcp")
    tree.subscribe(simple("OLD"), "old")
    tree.subscribe(simple("NEW"), "new")
    tree.move(T("OLD:X"), T("NEW:Z"))
    assert [str(topic) for topic in tree.topics()] == ["OLD", "NEW", "NEW:Z", "NEW:Z:Y"]
    assert list(tree.match(T("NEW:Z:Y"))) == ["new"]
    node = tree.find(T("NEW:Z:Y"))
    assert node is not None
    assert (node.description, node.routing, node.name) == ("leaf", "tcp", "Y")


@pytest.mark.parametrize(("topic", "new"), [("A", "A:B:C"), ("A", "C"), ("X", "Y"), ("A", "A")])
def test_move_that_makes_no_sense_changes_nothing(topic: str, new: str) -> None:
    tree = fixed("A:B", "C")
    with pytest.raises(EditError, match=f"topic {topic} cannot move to {new}"):
        tree.move(T(topic), T(new))
    assert [str(t) for t in tree.topics()] == ["A", "C", "A:B"]


def test_moving_in_an_open_tree_takes_what_is_declared_and_leaves_what_is_in_use() -> None:
    tree: TopicTree[str] = TopicTree([Declaration(T("A:B"), "text")])
    tree.subscribe(concrete("A:B"), "s")
    tree.move(T("A"), T("Z"))
    assert {str(n.topic): (n.declared, n.description) for n in tree.nodes()} == {
        "A": (False, ""),
        "A:B": (False, ""),
        "Z": (True, ""),
        "Z:B": (True, "text"),
    }


def test_a_node_holds_its_name_code_path_routing_and_subscribers_under_one_virtual_root() -> None:
    dn = "cn=ALARM,cn=ALL,ou=topics,dc=hpwsn"
    declarations = [Declaration(T("ALL:ALARM"), "at once", "tcp", dn), Declaration(T("OTHER"))]
    tree: TopicTree[str] = TopicTree(declarations, fixed=True)
    tree.subscribe(simple("ALL"), "of all")
    tree.subscribe(simple("ALL:ALARM"), "of alarms")
    node = tree.publish(T("ALL:ALARM"))
    assert (node.name, node.code, node.path, node.routing) == ("ALARM", "1.1", dn, "tcp")
    assert node.subscribers == ("of all", "of alarms")
    assert [str(topic) for topic in tree.root.children] == ["ALL", "OTHER"]
    assert tree.root.code == ""
    assert [str(each.topic) for each in tree.root.below()] == ["ALL", "OTHER", "ALL:ALARM"]


def test_codes_follow_the_position_and_survive_a_reload() -> None:
    tree = fixed("A:X", "A:Y:Z", "B")
    codes = {str(node.topic): node.code for node in tree.nodes()}
    assert codes == {"A": "1", "B": "2", "A:X": "1.1", "A:Y": "1.2", "A:Y:Z": "1.2.1"}
    tree.retain(T("A:Y:Z"), 5)
    tree.replace_all([Declaration(T("A:Y:Z")), Declaration(T("A:Q"))])
    assert {str(node.topic): node.code for node in tree.nodes()} == {
        "A": "1",
        "A:Y": "1.2",
        "A:Q": "1.3",
        "A:Y:Z": "1.2.1",
    }
    assert tree.publish(T("A:Y:Z")).current == 5


def test_topics_an_expression_names_at_the_moment_are_without_the_subtree_of_a_simple_one() -> None:
    tree = fixed("A:B", "A:C")
    assert tree.concrete(simple("A")[0]) == (T("A"),)
    assert tree.concrete(concrete("A:X")[0]) == ()
    assert set(tree.concrete(full("A/*")[0])) == {T("A:B"), T("A:C")}


def test_keys_are_the_topics_a_subscription_covers_at_the_moment() -> None:
    tree = fixed("A:B", "A:C", "D")
    assert tree.keys(()) is None
    assert tree.keys(simple("A")) == frozenset({"A", "A:B", "A:C"})
    assert tree.keys(simple("A") + full("*/B|D")) == frozenset({"A:B"})
    assert tree.keys(concrete("X")) == frozenset()
    assert {str(node.topic) for node in tree.matching(simple("A"))} == {"A", "A:B", "A:C"}
    assert list(tree.matching(())) == list(tree.nodes())
    assert not list(tree.matching(concrete("X")))


def test_checking_a_publication_refuses_as_publishing_does_and_makes_no_topic() -> None:
    tree: TopicTree[str] = TopicTree(limit=1)
    tree.check_publish(T("A"))
    assert not len(tree)
    with pytest.raises(TopicNotSupportedFault, match="no more than 1 topics"):
        tree.check_publish(T("A:B"))
    with pytest.raises(TopicNotSupportedFault, match="topic B is not among"):
        fixed("A").check_publish(T("B"))


def test_subscribing_to_one_topic_costs_its_subtree_and_not_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = fixed(*(f"ALL:T{number}:X" for number in range(500)))
    asked: list[Topic] = []
    matches = TopicExpression.matches

    def counting(self: TopicExpression, topic: Topic, simple_subtree: bool = True) -> bool:
        asked.append(topic)
        return matches(self, topic, simple_subtree)

    monkeypatch.setattr(TopicExpression, "matches", counting)
    tree.subscribe(simple("ALL:T7"), "s")
    tree.subscribe(concrete("ALL"), "s")
    assert len(asked) < 10
    asked.clear()
    assert list(tree.match(T("ALL:T7:X"))) == ["s"]
    assert not asked


def test_subscribers_that_left_take_no_room_among_those_that_stay() -> None:
    tree: TopicTree[int] = TopicTree()
    for who in range(1000):
        tree.subscribe(simple("A"), who)
    for who in range(999):
        tree.unsubscribe(simple("A"), who)
    (interest,) = tree.publish(T("A")).groups
    assert list(tree.match(T("A"))) == [999]
    assert sys.getsizeof(interest.subscribers.members) < 1000


@pytest.mark.parametrize("is_fixed", [False, True])
def test_ten_thousand_rounds_of_subscribing_leave_nothing_behind(is_fixed: bool) -> None:
    tree = fixed("ALL:A:B") if is_fixed else TopicTree[str]()
    shapes = [simple("ALL:A"), concrete("ALL:A:B"), full("ALL//*"), (), simple("ALL") + full("ALL/*")]

    def rounds(count: int) -> None:
        for number in range(count):
            name = f"subscriber {number}"
            for expressions in shapes:
                tree.subscribe(expressions, name)
            for expressions in shapes:
                tree.unsubscribe(expressions, name)

    rounds(100)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        rounds(2000)
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < 10_000
    assert len(tree) == (3 if is_fixed else 0)


def test_removed_topic_keeps_its_current_message_for_when_it_is_back() -> None:
    tree = fixed("A:B", "C")
    tree.retain(T("A:B"), 7)
    tree.remove(T("A"))
    assert tree.find(T("A:B")) is None
    assert tree.current(T("A:B")) == 7
    tree.add(T("A:B"))
    assert tree.publish(T("A:B")).current == 7


def test_removed_topic_lets_its_message_go_with_the_log() -> None:
    tree = fixed("A")
    tree.retain(T("A"), 7)
    tree.remove(T("A"))
    tree.release(T("A"))
    assert tree.current(T("A")) is None
    tree.add(T("A"))
    assert tree.publish(T("A")).current is None


def test_what_was_accepted_before_the_removal_finds_its_subscribers_and_nothing_later_does() -> None:
    tree = fixed("A:B")
    tree.subscribe(simple("A"), "s")
    tree.retain(T("A:B"), 1)
    tree.remove(T("A:B"))
    assert list(tree.match(T("A:B"))) == []
    assert list(tree.match(T("A:B"), accepted=True)) == ["s"]
    assert tree.keys(simple("A")) == frozenset({"A", "A:B"})
    tree.release(T("A:B"))
    assert tree.keys(simple("A")) == frozenset({"A"})


def test_subscribers_without_a_topic_are_found_until_one_is_back() -> None:
    tree = fixed("A", "B")
    tree.subscribe(concrete("A"), "lost")
    tree.subscribe(full("A|B"), "wide")
    tree.subscribe((), "everything")
    assert tree.unmatched() == []
    tree.remove(T("A"))
    assert tree.unmatched() == ["lost"]
    assert not tree.matches_any(concrete("A"))
    assert tree.matches_any(full("A|B"))
    assert tree.matches_any(())
    tree.add(T("A"))
    assert tree.unmatched() == []
