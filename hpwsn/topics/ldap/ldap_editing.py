"""Carries out an edit plan in OpenLDAP: one guarded request for each step, undone if a later one fails.

LDAP has no transactions that are on everywhere, so the steps run one after another. Each request on an entry
has an assertion (RFC 4528) that its entryCSN is still the one that was read, and asks for the new one
(RFC 4527). If a request fails, the requests before it are undone in the opposite order, with the same guards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ldap
from ldap.controls import AssertionControl, RequestControl
from ldap.controls.readentry import PostReadControl, PreReadControl

from hpwsn.topics.directory.directory import Access, TopicDirectoryError
from hpwsn.topics.editing.edit_plan import EditPlan, Item, Step
from hpwsn.topics.ldap.entries.dn import split_dn
from hpwsn.topics.ldap.entries.topic_entry import (
    VISIBILITY_CLASS,
    attributes_of,
    caseless,
    own_namespace,
    rdn_of,
)
from hpwsn.topics.ldap.ldap_connection import Location, errors
from hpwsn.topics.tree.declarations import Declaration, rebase
from hpwsn_client.wsn.topics.topic_expressions import Topic

PERMISSIVE = RequestControl("1.2.840.113556.1.4.1413", criticality=True)
"""The control by which adding a value that exists is not an error."""
CONFLICTS = (ldap.ALREADY_EXISTS, ldap.NO_SUCH_OBJECT, ldap.ASSERTION_FAILED, ldap.NOT_ALLOWED_ON_NONLEAF)
"""What a server answers when another editor was faster."""

_Attributes = list[tuple[str, list[bytes]]]
_Modifications = list[tuple[int, str, list[bytes] | None]]


def modifications(old: Declaration, new: Declaration) -> _Modifications:
    """Return the changes of an entry's attributes; empty if nothing changes."""
    values = {
        "description": (old.description, new.description),
        "hpwsnRouting": (old.routing, new.routing),
        "hpwsnVisibility": (old.visibility, new.visibility),
    }
    changes: _Modifications = [
        (ldap.MOD_REPLACE, name, [after.encode()] if after else None)
        for name, (before, after) in values.items()
        if (before or None) != (after or None)
    ]
    if new.visibility and not old.visibility:
        # The entry may have the class already, from a visibility that was removed.
        changes.insert(0, (ldap.MOD_ADD, "objectClass", [VISIBILITY_CLASS.encode()]))
    return changes


class LdapEditing:
    """The steps of one plan on one connection."""

    def __init__(self, connection: Any, location: Location, access: Access, plan: EditPlan) -> None:
        self._connection = connection
        self._location = location
        self._access = access
        self._steps = plan.steps
        self._paths = {topic: each.path or "" for topic, each in plan.before.items()}
        self._children: dict[Topic | None, set[Topic]] = {}
        for topic in plan.before:
            self._children.setdefault(topic.parent, set()).add(topic)
        self._undo: list[Callable[[], object]] = []

    def carry_out(self) -> None:
        """Make all steps, or none; TopicDirectoryError says which step failed, its cause is the server's."""
        for number, step in enumerate(self._steps, 1):
            try:
                self._make(step)
            except TopicDirectoryError as error:
                self._roll_back(number, error)

    def _roll_back(self, number: int, error: TopicDirectoryError) -> None:
        done = len(self._undo)
        try:
            while self._undo:
                self._undo[-1]()
                self._undo.pop()
        except TopicDirectoryError as second:
            raise TopicDirectoryError(
                f"{error}; this was change {number} of {len(self._steps)}, and {len(self._undo)} of the"
                f" changes before it could not be undone: {second}; look at the topics again"
            ) from None
        if not done:
            raise error
        raise TopicDirectoryError(
            f"{error}; this was change {number} of {len(self._steps)}, and those before it are undone"
        ) from error.__cause__

    def _make(self, step: Step) -> None:
        if step.before is None:
            assert step.after is not None
            self._add(step.item, step.after)
        elif step.after is None:
            self._remove(step.item, step.before)
        elif step.is_move:
            self._move(step.item, step.before, step.after)
        else:
            self._set(step.item, step.before, step.after)

    def _add(self, item: Item, new: Declaration) -> None:
        topic = new.topic
        exact = self._has_twin(topic)
        above = self._location.base if topic.parent is None else self._paths[topic.parent]
        path = f"{rdn_of(topic, exact)},{above}"
        values = attributes_of(new, exact).items()
        self._insert(item, path, [(name, [value.encode() for value in each]) for name, each in values])
        self._link(topic, path)
        self._undo.append(lambda: self._delete(item, path))

    def _set(self, item: Item, old: Declaration, new: Declaration) -> None:
        path = self._paths[new.topic]
        self._modify(item, path, modifications(old, new))
        self._undo.append(lambda: self._modify(item, path, modifications(new, old)))

    def _move(self, item: Item, old: Declaration, new: Declaration) -> None:
        path = self._paths[old.topic]
        self._drop_namespace(item, old, path)
        rdn, above = split_dn(path)
        parent = new.topic.parent
        below = self._location.base if parent is None else self._paths[parent]
        moved = rdn_of(new.topic, self._has_twin(new.topic, old.topic))
        self._rename(item, path, moved, below)
        self._rebase(old.topic, new.topic, f"{moved},{below}")
        self._undo.append(lambda: self._rename(item, f"{moved},{below}", rdn, above))

    def _drop_namespace(self, item: Item, old: Declaration, path: str) -> None:
        """Remove the namespace attribute if it is not in the RDN, since a rename would keep it."""
        namespace, _ = own_namespace(old.topic)
        if namespace is None or "hpwsnnamespace=" in split_dn(path)[0].lower():
            return
        restored: _Modifications = [(ldap.MOD_ADD, "hpwsnNamespace", [namespace.encode()])]
        self._modify(item, path, [(ldap.MOD_DELETE, "hpwsnNamespace", None)])
        self._undo.append(lambda: self._modify(item, path, restored))

    def _remove(self, item: Item, old: Declaration) -> None:
        path = self._paths[old.topic]
        attributes = self._delete(item, path)
        del self._paths[old.topic]
        self._children[old.topic.parent].discard(old.topic)
        self._undo.append(lambda: self._insert(item, path, attributes))

    # Requests

    def _insert(self, item: Item, path: str, attributes: _Attributes) -> None:
        self._write(item, "add_ext", path, attributes, guarded=False)

    def _modify(self, item: Item, path: str, changes: _Modifications) -> None:
        self._write(item, "modify_ext", path, changes)

    def _rename(self, item: Item, path: str, rdn: str, above: str) -> None:
        self._write(item, "rename", path, rdn, above, 1)

    def _delete(self, item: Item, path: str) -> _Attributes:
        """Delete an entry; return its attributes, also those that are not ours."""
        control = PreReadControl(criticality=True, attrList=["*"])
        return list(self._request("delete_ext", path, guard=item.version, control=control).items())

    def _write(self, item: Item, operation: str, *arguments: Any, guarded: bool = True) -> None:
        control = PostReadControl(criticality=False, attrList=["entryCSN"])
        guard = item.version if guarded else None
        found = self._request(operation, *arguments, guard=guard, control=control).get("entryCSN")
        item.written(found[0].decode() if found else None)

    def _request(
        self, operation: str, *arguments: Any, guard: str | None, control: Any
    ) -> dict[str, list[bytes]]:
        """Send a request and wait for its end; return what the control has read, nothing if it has not."""
        controls = [control, *([] if guard is None else [AssertionControl(True, f"(entryCSN={guard})")])]
        if operation == "modify_ext":
            controls.append(PERMISSIVE)
        with errors(self._location):
            message = getattr(self._connection, operation)(*arguments, serverctrls=controls)
            _, _, _, answered = self._connection.result3(message, timeout=self._access.timeout)
        for each in answered or ():
            if each.controlType == control.controlType:
                return dict(each.entry)
        return {}

    # Paths

    def _has_twin(self, topic: Topic, besides: Topic | None = None) -> bool:
        """Whether a sibling differs only in case, so that `cn` alone does not tell them apart."""
        siblings = self._children.get(topic.parent, ())
        return any(caseless(each) == caseless(topic) for each in siblings if each not in (topic, besides))

    def _link(self, topic: Topic, path: str) -> None:
        self._paths[topic] = path
        self._children.setdefault(topic.parent, set()).add(topic)

    def _rebase(self, old: Topic, new: Topic, path: str) -> None:
        """Give the moved topic and all below it their new paths."""
        self._children[old.parent].discard(old)
        pending = [(old, path)]
        while pending:
            topic, moved = pending.pop()
            for child in self._children.pop(topic, ()):
                rdn, _ = split_dn(self._paths[child])
                pending += [(child, f"{rdn},{moved}")]
            del self._paths[topic]
            self._link(rebase(topic, old, new), moved)
