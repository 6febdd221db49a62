"""One edit of a declared topic, and the reasons why edits are refused.

Pure. An `etag` names the state of a topic that the editor has seen: in LDAP the entryCSN of its entry, in a
file a hash of its values. An edit with an etag is refused if the topic has changed since; edits of other
topics do not matter.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.topics.tree.declarations import ROUTING_POLICIES, VISIBILITIES, Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic

OPERATIONS = ("add", "set", "move", "remove")
MOST_EDITS = 20_000
"""The most edits of a request, and the most edits that undo them."""
LONGEST_DESCRIPTION = 10_000
MOST_NAMED = 100
"""The most problems or conflicts that an answer names."""
ANY = "*"
"""The etag of any state: the topic must exist."""
_UNUSABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class TopicEdit:
    """An edit; None leaves a value as it is, and an empty text removes it.

    `add` declares a topic that is not declared, with its missing parents. `move` and `remove` take the whole
    subtree along. `below`, if given, is the number of topics below it that the editor has seen.
    """

    op: str
    topic: Topic
    to: Topic | None = None
    description: str | None = None
    routing: str | None = None
    visibility: str | None = None
    etag: str | None = None
    below: int | None = None

    def problem(self) -> str | None:
        """Return why the edit makes no sense, whatever topics there are; None if it does."""
        if self.op not in OPERATIONS:
            return f"op is {self.op!r}; it must be one of {', '.join(OPERATIONS)}"
        if (self.to is None) == (self.op == "move"):
            return "a move needs `to`, the new topic" if self.op == "move" else f"{self.op} takes no `to`"
        if self.op in ("move", "remove") and self.values != (None, None, None):
            return f"{self.op} takes no description, routing or visibility; use op set"
        if self.op == "add" and self.etag is not None:
            return "add takes no etag, since the topic does not exist yet"
        if self.op in ("add", "set") and self.below is not None:
            return f"{self.op} takes no `below`; it is for move and remove"
        return _problem_of_values(self)

    @property
    def values(self) -> tuple[str | None, str | None, str | None]:
        """Description, routing and visibility."""
        return self.description, self.routing, self.visibility

    def as_json(self) -> dict[str, Any]:
        """Return the edit as the HTTP API takes it; null removes a value."""
        found: dict[str, Any] = {"op": self.op, "topic": str(self.topic)}
        if self.to is not None:
            found["to"] = str(self.to)
        if self.description is not None:
            found["description"] = self.description
        if self.routing is not None:
            found["routing"] = self.routing or None
        if self.visibility is not None:
            found["visibility"] = self.visibility or None
        if self.etag is not None:
            found["etag"] = self.etag
        if self.below is not None:
            found["below"] = self.below
        return found


def _problem_of_values(edit: TopicEdit) -> str | None:
    if edit.description and len(edit.description) > LONGEST_DESCRIPTION:
        return f"the description has {len(edit.description)} characters; the limit is {LONGEST_DESCRIPTION}"
    if edit.description and (found := _UNUSABLE.search(edit.description)):
        return f"the description has the character {found[0]!r}, which XML does not allow; leave it out"
    if edit.routing and edit.routing not in ROUTING_POLICIES:
        return f"routing is {edit.routing!r}; it must be {' or '.join(ROUTING_POLICIES)}, or null"
    if edit.visibility and edit.visibility not in VISIBILITIES:
        return f"visibility is {edit.visibility!r}; it must be {' or '.join(VISIBILITIES)}, or null"
    return None


def etag_of(declaration: Declaration) -> str:
    """Return the etag of a declared topic: the version of its directory, or a hash of its values."""
    if declaration.version is not None:
        return declaration.version
    values = (str(declaration.topic), declaration.description, declaration.routing, declaration.visibility)
    return sha256(repr(values).encode("utf-8", "surrogatepass")).hexdigest()[:20]


def entry_json(declaration: Declaration | None) -> dict[str, Any] | None:
    """Return a declared topic with its etag for the HTTP API; None stays None."""
    return None if declaration is None else {**values_json(declaration), "etag": etag_of(declaration)}


def values_json(declaration: Declaration) -> dict[str, Any]:
    """Return the values of a declared topic for the HTTP API."""
    return {
        "topic": str(declaration.topic),
        "description": declaration.description,
        "routing": declaration.routing,
        "visibility": declaration.visibility,
    }


@dataclass(frozen=True, slots=True)
class Conflict:
    """An edit that does not fit the topics as they are now.

    `seen` is the etag that the editor had, and `theirs` the topic now; None if it is not declared.
    """

    topic: Topic
    reason: str
    seen: str | None
    theirs: Declaration | None


class EditsRefused(HpwsnError):
    """Edits are not valid; `problems` are the reasons, each with the place of its edit."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__(_joined(self.problems))


class EditsConflict(HpwsnError):
    """Others have edited the topics meanwhile; nothing was changed."""

    def __init__(self, conflicts: Iterable[Conflict]) -> None:
        self.conflicts = list(conflicts)
        super().__init__(_joined([each.reason for each in self.conflicts]))


def _joined(reasons: list[str]) -> str:
    more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"
