"""What a topic directory says about a topic, and edits on a whole set of such declarations.

Pure data: every directory (file, LDAP) loads into these, the tree is built from these. A set is always
closed under parents (a topic's ancestors are in it too) and in breadth-first order, shortest topics first
and otherwise in the order of arrival, so that codes come out the same on every load.

What is different between two states of a topic directory, which is what a running tree is told.

Pure data. In a change no topic is both declared and removed, and with a topic all below it are removed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from hpwsn.errors import HpwsnError
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROUTING_POLICIES = ("udp", "tcp")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared topic; `routing` None leaves the choice to the routing layer, `path` is its LDAP DN."""

    topic: Topic
    description: str = ""
    routing: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Topics that are new or say something else now, parents first, and topics that are gone."""

    declared: tuple[Declaration, ...] = ()
    removed: tuple[Topic, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.declared or self.removed)


@dataclass(frozen=True, slots=True)
class Report:
    """What a directory's watcher has to say.

    `change` is against the report before, or everything there is where `whole`; None says nothing about
    topics. `problem` is why the directory cannot be read at the moment, `skipped` what in it is no topic.
    """

    change: Change | None = None
    whole: bool = False
    problem: str | None = None
    skipped: tuple[str, ...] = ()


def difference(old: Mapping[Topic, Declaration], new: Iterable[Declaration]) -> Change:
    """The change that leads from one set of declared topics to another, which is in breadth-first order."""
    wanted = {declaration.topic: declaration for declaration in new}
    return Change(
        tuple(declaration for topic, declaration in wanted.items() if old.get(topic) != declaration),
        tuple(topic for topic in old if topic not in wanted),
    )


class EditError(HpwsnError):
    """An edit that the declared topics do not allow; the text says why and what to do."""


def with_parents(declarations: Iterable[Declaration]) -> list[Declaration]:
    """The declarations breadth-first, missing parents filled in; the last one said about a topic holds."""
    known: dict[Topic, Declaration] = {}
    for declaration in declarations:
        parent = declaration.topic.parent
        if parent is not None:
            for topic in missing_topics(parent, known):
                known[topic] = Declaration(topic)
        known[declaration.topic] = declaration
    return sorted(known.values(), key=lambda declaration: len(declaration.topic.path))


def missing_topics(topic: Topic, known: Container[Topic]) -> list[Topic]:
    """The topic and its ancestors as far as they are not known, from the root down.

    It asks for one parent at a time, since the first known one ends it and a Topic costs something to make.
    """
    found: list[Topic] = []
    place: Topic | None = topic
    while place is not None and place not in known:
        found.append(place)
        place = place.parent
    found.reverse()
    return found


def add_declaration(declarations: Iterable[Declaration], new: Declaration) -> list[Declaration]:
    """With one more topic and its parents; what `new` leaves empty stays as it was where the topic exists."""
    return merge_declarations(declarations, (new,))


def merge_declarations(declarations: Iterable[Declaration], new: Iterable[Declaration]) -> list[Declaration]:
    """With several more topics, each as `add` does it."""
    known = {declaration.topic: declaration for declaration in declarations}
    for declaration in new:
        known[declaration.topic] = merge_declaration(known.get(declaration.topic), declaration)
    return with_parents(known.values())


def merge_declaration(old: Declaration | None, new: Declaration) -> Declaration:
    """The new declaration, its empty fields taken from the old one."""
    if old is None:
        return new
    return replace(
        new,
        description=new.description or old.description,
        routing=new.routing or old.routing,
        path=new.path or old.path,
    )


def remove_topic(
    declarations: Iterable[Declaration], topic: Topic, recursive: bool = False
) -> list[Declaration]:
    """Without the topic; with its subtree where `recursive`, which a topic with children requires."""
    kept, gone = _split(declarations, topic)
    if len(gone) > 1 and not recursive:
        below = len(gone) - 1
        raise EditError(f"topic {topic} has {below} below it: remove those first, or remove recursively")
    return kept


def move_topic(declarations: Iterable[Declaration], topic: Topic, new: Topic) -> list[Declaration]:
    """With the topic and its subtree at another place, whose parents are added where they are missing."""
    kept, moved = _split(declarations, topic)
    if topic.covers(new):
        raise EditError(f"topic {topic} cannot move to {new}, which is below it: choose another place")
    if any(declaration.topic == new for declaration in kept):
        raise EditError(f"topic {new} exists already: remove it first, or choose another name for {topic}")
    renamed = [replace(item, topic=rebase(item.topic, topic, new), path=None) for item in moved]
    return with_parents([*kept, *renamed])


def rebase(topic: Topic, old: Topic, new: Topic) -> Topic:
    """The place of a topic below `old` once `old` is `new`."""
    return Topic(new.namespace, new.path + topic.path[len(old.path) :])


def _split(declarations: Iterable[Declaration], topic: Topic) -> tuple[list[Declaration], list[Declaration]]:
    outside: list[Declaration] = []
    inside: list[Declaration] = []
    for declaration in declarations:
        (inside if topic.covers(declaration.topic) else outside).append(declaration)
    if not inside:
        raise EditError(f"topic {topic} is not in the directory: `hpwsn topics list` shows what is")
    return outside, inside
