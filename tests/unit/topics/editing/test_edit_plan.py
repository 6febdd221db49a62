"""Plans of edits: any edits and then their undo give the same declarations, and limits hold at their edge."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.topics.editing.edit_plan import EditPlan, plan_edits, plan_import
from hpwsn.topics.editing.topic_edit import (
    LONGEST_DESCRIPTION,
    MOST_EDITS,
    EditsConflict,
    EditsRefused,
    TopicEdit,
    etag_of,
)
from hpwsn.topics.tree.declarations import Declaration, EditError, checked_visibility, with_parents
from hpwsn_client.wsn.topics.topic_expressions import Topic

T = Topic.parse
Known = Mapping[Topic, Declaration]
PATHS = st.lists(st.sampled_from("ABC"), min_size=1, max_size=3)
TOPICS = st.builds(
    lambda prefix, path: T(prefix + ":".join(path)), st.sampled_from(["", "", "{urn:x}"]), PATHS
)
TEXTS = st.sampled_from([None, "", "one", "two\nlines"])
VALUES = (TEXTS, st.sampled_from([None, "", "udp", "tcp"]), st.sampled_from([None, "", "internal"]))
EDITS = st.one_of(
    st.builds(lambda topic, *values: TopicEdit("add", topic, None, *values), TOPICS, *VALUES),
    st.builds(lambda topic, *values: TopicEdit("set", topic, None, *values), TOPICS, *VALUES),
    st.builds(lambda topic, to: TopicEdit("move", topic, to), TOPICS, TOPICS),
    st.builds(lambda topic: TopicEdit("remove", topic), TOPICS),
)
DECLARED = st.lists(
    st.builds(
        Declaration,
        TOPICS,
        st.sampled_from(["", "text"]),
        st.sampled_from([None, "udp"]),
        st.none(),
        st.sampled_from([None, None, "internal"]),
    ),
    max_size=8,
)


def known_of(declarations: list[Declaration]) -> dict[Topic, Declaration]:
    return {each.topic: each for each in with_parents(declarations)}


def after(plan: EditPlan) -> dict[Topic, Declaration]:
    return {each.topic: each for each in plan.declarations()}


def possible(known: Known, edits: list[TopicEdit]) -> list[TopicEdit]:
    """Those of the edits that can be made, one after another."""
    kept: list[TopicEdit] = []
    for edit in edits:
        try:
            plan_edits(known, [*kept, edit])
        except (EditsConflict, EditsRefused):
            continue
        kept.append(edit)
    return kept


@settings(max_examples=300, deadline=None)
@given(DECLARED, st.lists(EDITS, max_size=12))
def test_edits_and_then_their_undo_give_the_same_declarations(
    declared: list[Declaration], edits: list[TopicEdit]
) -> None:
    known = known_of(declared)
    plan = plan_edits(known, possible(known, edits))
    assert set(plan.gone()) >= set(known) - set(after(plan))
    undone = plan_edits(after(plan), plan.undo())
    assert after(undone) == known
    assert after(plan_edits(after(undone), undone.undo())) == after(plan)


@settings(max_examples=300, deadline=None)
@given(DECLARED, st.lists(EDITS, min_size=1, max_size=6), EDITS)
def test_an_undo_after_another_edit_of_the_same_topics_conflicts_or_keeps_that_edit(
    declared: list[Declaration], edits: list[TopicEdit], other: TopicEdit
) -> None:
    known = known_of(declared)
    plan = plan_edits(known, possible(known, edits))
    try:
        between = plan_edits(after(plan), [other])
        undone = after(plan_edits(after(between), plan.undo()))
    except (EditsConflict, EditsRefused):
        return
    for step in between.steps:
        if step.before is not None and step.after is not None and not step.is_move:
            kept = [each for each in undone.values() if each.description == step.after.description]
            assert kept or step.after.description == step.before.description


@settings(max_examples=200, deadline=None)
@given(DECLARED, DECLARED, st.booleans())
def test_an_import_declares_what_it_should_and_can_be_undone(
    declared: list[Declaration], new: list[Declaration], merge: bool
) -> None:
    known, wanted = known_of(declared), known_of(new)
    try:
        checked_visibility(list(wanted.values()))
    except EditError:
        return
    plan = plan_import(known, wanted.values(), merge)
    if merge:
        assert set(after(plan)) == {*known, *wanted}
    else:
        assert after(plan) == wanted
    assert after(plan_edits(after(plan), plan.undo())) == known


def test_an_etag_changes_with_each_value_and_with_nothing_else() -> None:
    first = Declaration(T("A"), "text", "udp", "cn=A", "internal")
    others = [
        Declaration(T("B"), "text", "udp", "cn=A", "internal"),
        Declaration(T("A"), "", "udp", "cn=A", "internal"),
        Declaration(T("A"), "text", None, "cn=A", "internal"),
        Declaration(T("A"), "text", "udp", "cn=A", None),
    ]
    assert len({etag_of(each) for each in (first, *others)}) == 5
    assert etag_of(first) == etag_of(Declaration(T("A"), "text", "udp", None, "internal"))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (TopicEdit("rename", T("A")), "op is 'rename'; it must be one of add, set, move, remove"),
        (TopicEdit("move", T("A")), "a move needs `to`"),
        (TopicEdit("set", T("A"), T("B")), "set takes no `to`"),
        (TopicEdit("remove", T("A"), description="x"), "remove takes no description"),
        (TopicEdit("add", T("N"), etag="x"), "add takes no etag"),
        (TopicEdit("set", T("A"), below=1), "set takes no `below`"),
        (TopicEdit("set", T("A"), routing="post"), "routing is 'post'; it must be udp or tcp, or null"),
        (TopicEdit("set", T("A"), visibility="secret"), "visibility is 'secret'"),
        (TopicEdit("set", T("A"), description="a\x00b"), "which XML does not allow"),
        (
            TopicEdit("set", T("A"), description="x" * (LONGEST_DESCRIPTION + 1)),
            "has 10001 characters; the limit is 10000",
        ),
        (TopicEdit("move", T("A"), T("A")), "which is itself or below it"),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused_with_the_reason(edit: TopicEdit, words: str) -> None:
    with pytest.raises(EditsRefused) as refused:
        plan_edits(known_of([Declaration(T("A"))]), [edit])
    assert words in refused.value.problems[0]


def test_a_description_of_the_longest_length_is_accepted() -> None:
    longest = "x" * LONGEST_DESCRIPTION
    plan = plan_edits({}, [TopicEdit("add", T("A"), description=longest)])
    assert after(plan)[T("A")].description == longest


def test_a_request_changes_no_more_topics_than_its_undo_may_have() -> None:
    known = known_of([Declaration(T(f"A:n{number}")) for number in range(MOST_EDITS - 1)])
    assert len(plan_edits(known, [TopicEdit("remove", T("A"))]).undo()) == MOST_EDITS
    known |= known_of([Declaration(T("A:more"))])
    with pytest.raises(EditsRefused, match=f"changes more than {MOST_EDITS} topics"):
        plan_edits(known, [TopicEdit("remove", T("A"))])
    assert plan_edits(known, [TopicEdit("move", T("A"), T("B"))]).touched() == MOST_EDITS + 1
