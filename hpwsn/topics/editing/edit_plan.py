"""The plan of a request's edits: checked steps of one topic each, and the edits that undo them.

Pure. The edits apply one after another to the topics of a directory; an etag refers to the state before the
request. All edits are valid, or the plan fails and names every problem. A directory carries out the steps in
order and notes the new version of each item, from which the plan makes the etags of `undo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hpwsn.topics.editing.topic_edit import (
    ANY,
    MOST_EDITS,
    Conflict,
    EditsConflict,
    EditsRefused,
    TopicEdit,
    etag_of,
)
from hpwsn.topics.tree.declarations import (
    INTERNAL,
    Declaration,
    EditError,
    checked_visibility,
    internal_topics,
    missing_topics,
    rebase,
    with_parents,
)
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Item:
    """A topic during the edits: `now` is None once it is removed, `base` is its etag before them.

    `version` is that of its entry in a directory with versions.
    """

    __slots__ = ("base", "now", "version")

    def __init__(self, now: Declaration, base: str | None) -> None:
        self.now: Declaration | None = now
        self.base = base
        self.version = now.version

    def written(self, version: str | None) -> None:
        """Note the version that the directory gave to the last step."""
        self.version = version
        if self.now is not None:
            self.now = replace(self.now, version=version)


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one topic; a move takes `below` topics along, and a removed topic has none below it."""

    item: Item
    before: Declaration | None
    after: Declaration | None
    below: int = 0

    @property
    def is_move(self) -> bool:
        """Whether the topic has another name afterwards."""
        return self.before is not None and self.after is not None and self.before.topic != self.after.topic


class EditPlan:
    """The steps of a request, and the topics before and after them."""

    def __init__(
        self,
        before: Mapping[Topic, Declaration],
        steps: list[Step],
        items: Iterable[Item],
        exposed: Sequence[Topic] = (),
    ) -> None:
        self.before = before
        self.steps = steps
        self._items = items
        self.exposed = exposed
        """The topics whose internal mark a step lifts, moves or removes, or that a move makes public."""

    def declarations(self) -> list[Declaration]:
        """Return all topics after the steps, each after its parent."""
        return with_parents(each.now for each in self._items if each.now is not None)

    def touched(self) -> int:
        """Return the number of topics that the steps add, change, move or remove."""
        return len({id(each.item) for each in self.steps}) + sum(each.below for each in self.steps)

    def gone(self) -> list[Topic]:
        """Return the topics that are removed or moved away."""
        return self._outcome[0]

    def hidden(self) -> list[Topic]:
        """Return the topics that are internal from now on."""
        return self._outcome[1]

    def made(self) -> list[Topic]:
        """Return the new topics that subscribers get."""
        return self._outcome[2]

    @cached_property
    def _outcome(self) -> tuple[list[Topic], list[Topic], list[Topic]]:
        after = self.declarations()
        names = {each.topic for each in after}
        internal = internal_topics(after)
        hidden = internal - internal_topics(self.before.values())
        return (
            [topic for topic in self.before if topic not in names],
            [topic for topic in self.before if topic in hidden],
            [each.topic for each in after if each.topic not in self.before and each.topic not in internal],
        )

    def shown_by(self, known: Mapping[Topic, Declaration]) -> bool:
        """Whether topics with versions show all steps, or something later."""
        return all(self._shows(known, step) for step in self.steps)

    def _shows(self, known: Mapping[Topic, Declaration], step: Step) -> bool:
        now, old = step.item.now, step.before
        if now is not None:
            found = known.get(now.topic)
            if found is None or (found.version or "") < (now.version or ""):
                return False
        there = None if old is None or (now is not None and now.topic == old.topic) else known.get(old.topic)
        return there is None or old is None or there.version != old.version

    def undo(self) -> list[TopicEdit]:
        """Return the edits that restore the topics as they were, guarded by the etags of now."""
        return [_inverse(step) for step in reversed(self.steps)]


def _inverse(step: Step) -> TopicEdit:
    before, after = step.before, step.after
    etag = None if step.item.now is None else etag_of(step.item.now)
    if after is None:
        assert before is not None
        return TopicEdit(
            "add",
            before.topic,
            description=before.description or None,
            routing=before.routing,
            visibility=before.visibility,
        )
    if before is None:
        return TopicEdit("remove", after.topic, etag=etag, below=0)
    if step.is_move:
        return TopicEdit("move", after.topic, to=before.topic, etag=etag, below=step.below)
    values = before.description, before.routing or "", before.visibility or ""
    return TopicEdit("set", after.topic, None, *values, etag=etag)


def plan_edits(known: Mapping[Topic, Declaration], edits: Sequence[TopicEdit]) -> EditPlan:
    """Return the plan of the edits; EditsRefused or EditsConflict if any of them is not possible."""
    return _Planner(known).plan(edits)


def plan_import(known: Mapping[Topic, Declaration], new: Iterable[Declaration], merge: bool) -> EditPlan:
    """Return the plan that declares these topics; without `merge`, it removes all others."""
    wanted = {each.topic: each for each in with_parents(new)}
    edits = [_import_edit(known.get(topic), each, merge) for topic, each in wanted.items()]
    if not merge:
        gone = (topic for topic in known if topic not in wanted)
        # The topmost ones; those below go with them.
        edits += [
            TopicEdit("remove", topic) for topic in gone if topic.parent is None or topic.parent in wanted
        ]
    try:
        return plan_edits(known, [each for each in edits if each is not None])
    except EditsRefused as error:
        # The numbers of the edits mean nothing to whoever imports.
        raise EditsRefused(each.partition(": ")[2] for each in error.problems) from None


def _import_edit(old: Declaration | None, new: Declaration, merge: bool) -> TopicEdit | None:
    values = new.description, new.routing or "", new.visibility or ""
    if old is None:
        return TopicEdit("add", new.topic, None, *values)
    edit = TopicEdit("set", new.topic, None, *values)
    if merge:
        edit = TopicEdit("set", new.topic, None, values[0] or None, values[1] or None, values[2] or None)
    return None if _set(old, edit) == old else edit


def _set(old: Declaration, edit: TopicEdit) -> Declaration:
    """Return a declaration with the values of an edit."""
    return replace(
        old,
        description=old.description if edit.description is None else edit.description,
        routing=old.routing if edit.routing is None else edit.routing or None,
        visibility=old.visibility if edit.visibility is None else edit.visibility or None,
    )


class _Refused(Exception):
    """One edit is not valid."""


class _Conflicts(Exception):
    """One edit does not fit the topics as they are."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.reason)
        self.conflict = conflict


class _Planner:
    """Applies edits to a copy of the topics."""

    def __init__(self, known: Mapping[Topic, Declaration]) -> None:
        self._known = known
        self._items = {topic: Item(each, etag_of(each)) for topic, each in known.items()}
        self._children: dict[Topic | None, dict[Topic, None]] = {}
        for topic in known:
            self._children.setdefault(topic.parent, {})[topic] = None
        self._steps: list[Step] = []
        self._exposed: list[Topic] = []

    def plan(self, edits: Sequence[TopicEdit]) -> EditPlan:
        problems: list[str] = []
        conflicts: list[Conflict] = []
        for number, edit in enumerate(edits):
            try:
                self._apply(edit)
            except _Refused as error:
                problems.append(f"changes[{number}]: {error}")
            except _Conflicts as error:
                conflicts.append(error.conflict)
            if len(self._steps) > MOST_EDITS:
                raise EditsRefused(
                    [
                        f"changes[{number}]: the request changes more than {MOST_EDITS} topics; split it, or"
                        " use `hpwsn topics`"
                    ]
                )
        if problems:
            raise EditsRefused(problems)
        if conflicts:
            raise EditsConflict(conflicts)
        plan = EditPlan(self._known, self._steps, self._items.values(), self._exposed)
        try:
            checked_visibility(plan.declarations())
        except EditError as error:
            raise EditsRefused([f"changes: {error}"]) from None
        return plan

    def _apply(self, edit: TopicEdit) -> None:
        problem = edit.problem()
        if problem is not None:
            raise _Refused(problem)
        if edit.op == "add":
            self._add(edit)
        elif edit.op == "set":
            self._change(edit)
        elif edit.op == "move":
            self._move(edit)
        else:
            self._remove(edit)

    def _existing(self, edit: TopicEdit) -> tuple[Item, Declaration]:
        item = self._items.get(edit.topic)
        if item is None or item.now is None:
            reason = (
                f"topic {edit.topic} is not declared; declare it with op add, or look at the topics again"
            )
            raise _Conflicts(Conflict(edit.topic, reason, edit.etag, None))
        if edit.etag not in (None, ANY, item.base):
            reason = f"topic {edit.topic} was changed by others since you read it; look at it again"
            raise _Conflicts(Conflict(edit.topic, reason, edit.etag, item.now))
        if edit.below is not None:
            below = sum(1 for _ in self._below(edit.topic))
            if below != edit.below:
                reason = f"topic {edit.topic} has {below} topics below it, and not {edit.below}; look again"
                raise _Conflicts(Conflict(edit.topic, reason, edit.etag, item.now))
        return item, item.now

    def _check_free(self, topic: Topic) -> None:
        if topic in self._items:
            reason = f"topic {topic} is declared already; change it with op set, or choose another name"
            raise _Conflicts(Conflict(topic, reason, None, self._items[topic].now))

    def _add(self, edit: TopicEdit) -> None:
        self._check_free(edit.topic)
        self._add_parents(edit.topic)
        self._insert(_set(Declaration(edit.topic), edit))

    def _add_parents(self, topic: Topic) -> None:
        for parent in missing_topics(topic, self._items)[:-1]:
            self._insert(Declaration(parent))

    def _insert(self, new: Declaration) -> None:
        item = Item(new, None)
        self._link(item, new)
        self._steps.append(Step(item, None, new))

    def _change(self, edit: TopicEdit) -> None:
        item, before = self._existing(edit)
        after = _set(before, edit)
        if after != before:
            item.now = after
            if after.visibility != INTERNAL:
                self._note_mark(before)
            self._steps.append(Step(item, before, after))

    def _move(self, edit: TopicEdit) -> None:
        assert edit.to is not None
        item, before = self._existing(edit)
        if edit.topic.covers(edit.to):
            raise _Refused(f"topic {edit.topic} cannot move to {edit.to}, which is itself or below it")
        self._check_free(edit.to)
        self._add_parents(edit.to)
        moved = [edit.topic, *self._below(edit.topic)]
        if self._is_internal(edit.topic) and not self._is_internal(edit.to):
            self._exposed.append(edit.topic)
        items = [self._unlink(topic) for topic in reversed(moved)]
        for old, each in zip(moved, reversed(items), strict=True):
            assert each.now is not None
            self._note_mark(each.now)
            each.now = replace(each.now, topic=rebase(old, edit.topic, edit.to))
            self._link(each, each.now)
        self._steps.append(Step(item, before, item.now, len(moved) - 1))

    def _remove(self, edit: TopicEdit) -> None:
        self._existing(edit)
        for topic in reversed([edit.topic, *self._below(edit.topic)]):
            item = self._unlink(topic)
            self._note_mark(item.now)
            self._steps.append(Step(item, item.now, None))
            item.now = None

    def _note_mark(self, before: Declaration | None) -> None:
        """Note a topic that is no longer marked internal at this place."""
        if before is not None and before.visibility == INTERNAL:
            self._exposed.append(before.topic)

    def _is_internal(self, topic: Topic) -> bool:
        """Whether a topic, declared or not, is marked internal, or one above it is."""
        place: Topic | None = topic
        while place is not None:
            item = self._items.get(place)
            if item is not None and item.now is not None and item.now.visibility == INTERNAL:
                return True
            place = place.parent
        return False

    def _below(self, topic: Topic) -> Iterator[Topic]:
        """Yield all topics below one, each after its parent."""
        pending = [topic]
        while pending:
            children = self._children.get(pending.pop(), ())
            yield from children
            pending += children

    def _link(self, item: Item, declaration: Declaration) -> None:
        self._items[declaration.topic] = item
        self._children.setdefault(declaration.topic.parent, {})[declaration.topic] = None

    def _unlink(self, topic: Topic) -> Item:
        del self._children[topic.parent][topic]
        return self._items.pop(topic)
