"""Declared topics as data: declarations, edits of a set of them, and the difference between two sets.

Every directory (file, LDAP) loads declarations, and the tree is built from them. A set always contains the
ancestors of its topics. It is in breadth-first order, and within a level in order of arrival, so that every
load gives the same codes. Watchers report a `Change` to a running tree. In a change no topic is both declared
and removed, and a removed topic is removed with all topics below it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from hpwsn.errors import HpwsnError
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROUTING_POLICIES = ("udp", "tcp")
PUBLIC, INTERNAL = VISIBILITIES = ("public", "internal")
"""Who reads a topic: everybody, or only jobs."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared topic; `routing` None leaves the choice to the routing layer, `path` is its LDAP DN.

    `visibility` None is that of the topic above it, and for a root public. `version` is the state of its LDAP
    entry (entryCSN), which changes with each edit of the entry; None in other directories.
    """

    topic: Topic
    description: str = ""
    routing: str | None = None
    path: str | None = None
    visibility: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """New or changed topics, parents first, and removed topics."""

    declared: tuple[Declaration, ...] = ()
    removed: tuple[Topic, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.declared or self.removed)


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a directory's watcher.

    `change` is relative to the previous report, or the complete content if `whole`; None says nothing about
    topics. `problem` is why the directory cannot be read now, and `skipped` are its entries that are not
    topics. `request` is the number of the last `Watch.reload` before the directory was read.
    """

    change: Change | None = None
    whole: bool = False
    problem: str | None = None
    skipped: tuple[str, ...] = ()
    request: int = 0


def difference(old: Mapping[Topic, Declaration], new: Iterable[Declaration]) -> Change:
    """Return the change from one set of declared topics to another, which is in breadth-first order."""
    wanted = {declaration.topic: declaration for declaration in new}
    return Change(
        tuple(declaration for topic, declaration in wanted.items() if old.get(topic) != declaration),
        tuple(topic for topic in old if topic not in wanted),
    )


class EditError(HpwsnError):
    """The declared topics do not allow the edit; the text says why and what to do."""


def with_parents(declarations: Iterable[Declaration]) -> list[Declaration]:
    """Return the declarations breadth-first with missing parents; the last declaration of a topic wins."""
    known: dict[Topic, Declaration] = {}
    for declaration in declarations:
        parent = declaration.topic.parent
        if parent is not None:
            for topic in missing_topics(parent, known):
                known[topic] = Declaration(topic)
        known[declaration.topic] = declaration
    return sorted(known.values(), key=lambda declaration: len(declaration.topic.path))


def missing_topics(topic: Topic, known: Container[Topic]) -> list[Topic]:
    """Return the topic and its ancestors that are not known, from the root down.

    The search goes upwards and ends at the first known ancestor, since creating a Topic is costly.
    """
    found: list[Topic] = []
    place: Topic | None = topic
    while place is not None and place not in known:
        found.append(place)
        place = place.parent
    found.reverse()
    return found


def add_declaration(declarations: Iterable[Declaration], new: Declaration) -> list[Declaration]:
    """Return the declarations with one more topic and its parents; empty fields keep existing values."""
    return merge_declarations(declarations, (new,))


def merge_declarations(declarations: Iterable[Declaration], new: Iterable[Declaration]) -> list[Declaration]:
    """Return the declarations with several more topics, each added like `add_declaration`."""
    known = {declaration.topic: declaration for declaration in declarations}
    for declaration in new:
        known[declaration.topic] = merge_declaration(known.get(declaration.topic), declaration)
    return checked_visibility(with_parents(known.values()))


def merge_declaration(old: Declaration | None, new: Declaration) -> Declaration:
    """Return the new declaration with its empty fields filled from the old one."""
    if old is None:
        return new
    return replace(
        new,
        description=new.description or old.description,
        routing=new.routing or old.routing,
        path=new.path or old.path,
        visibility=new.visibility or old.visibility,
    )


def internal_topics(declarations: Iterable[Declaration]) -> set[Topic]:
    """Return the topics marked internal and all below them; each declaration comes after its parent."""
    found: set[Topic] = set()
    for declaration in declarations:
        if declaration.visibility == INTERNAL or declaration.topic.parent in found:
            found.add(declaration.topic)
    return found


def checked_visibility(declarations: list[Declaration]) -> list[Declaration]:
    """Return the declarations, parents first; EditError if one is public below an internal topic."""
    internal = internal_topics(declarations)
    for declaration in declarations:
        if declaration.visibility == PUBLIC and declaration.topic in internal:
            raise EditError(
                f"topic {declaration.topic} cannot be public, since {declaration.topic.parent} above it is"
                " internal; leave its visibility out, or make the topic above it public"
            )
    return declarations


def remove_topic(
    declarations: Iterable[Declaration], topic: Topic, recursive: bool = False
) -> list[Declaration]:
    """Return the declarations without the topic; one with children needs `recursive`."""
    kept, gone = _split(declarations, topic)
    if len(gone) > 1 and not recursive:
        below = len(gone) - 1
        raise EditError(f"topic {topic} has {below} below it; remove those first, or remove recursively")
    return kept


def move_topic(declarations: Iterable[Declaration], topic: Topic, new: Topic) -> list[Declaration]:
    """Return the declarations with the topic and its subtree moved, and the missing parents added."""
    kept, moved = _split(declarations, topic)
    if topic.covers(new):
        raise EditError(f"topic {topic} cannot move to {new}, which is below it; choose another place")
    if any(declaration.topic == new for declaration in kept):
        raise EditError(f"topic {new} exists already; remove it first, or choose another name for {topic}")
    renamed = [replace(item, topic=rebase(item.topic, topic, new), path=None) for item in moved]
    return checked_visibility(with_parents([*kept, *renamed]))


def rebase(topic: Topic, old: Topic, new: Topic) -> Topic:
    """Return the new topic for one below `old`, once `old` is `new`."""
    return Topic(new.namespace, new.path + topic.path[len(old.path) :])


def _split(declarations: Iterable[Declaration], topic: Topic) -> tuple[list[Declaration], list[Declaration]]:
    outside: list[Declaration] = []
    inside: list[Declaration] = []
    for declaration in declarations:
        (inside if topic.covers(declaration.topic) else outside).append(declaration)
    if not inside:
        raise EditError(f"topic {topic} is not in the directory; `hpwsn topics list` shows all topics")
    return outside, inside
